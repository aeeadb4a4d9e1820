// Declares the parts of Chart.js that the page's scripts use, for TypeScript's type check.
declare const Chart: any;
