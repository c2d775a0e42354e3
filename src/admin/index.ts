/** The admin API: what server administrators read and change, and the log of it. */
export { auditedRoutes } from './audit.ts';
export { type AdminDeps, openAdmin } from './open.ts';
