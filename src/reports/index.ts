/** Reports of content, for the administrators. */
export { reportMigrations } from './migrations.ts';
export { type Complaint, type Report, Reports } from './reports.ts';
export { reportRoutes } from './routes.ts';
