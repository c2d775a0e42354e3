/** Reports of errors to a service that speaks Sentry's protocol (decision 0250). */
export { ErrorReports } from './error-reports.ts';
