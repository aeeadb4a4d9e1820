// The parts of Chart.js that the page's scripts use, for the type check.
declare const Chart: any;
