/** Reports of users, rooms and events to the administrators. */

export { reportMigrations } from './migrations.ts';
export { openReports } from './open.ts';
export type { Report, ReportDetails, Reports } from './reports.ts';
export type { ReportTables } from './tables.ts';
