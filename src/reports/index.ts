/** Reports of users, rooms and events to the administrators. */

export { reportMigrations } from './migrations.ts';
export { type Report, type ReportDetails, Reports } from './reports.ts';
export { reportRoutes } from './routes.ts';
