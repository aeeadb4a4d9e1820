// What the page's scripts use of Chart.js, for the type check.
declare const Chart: any;
