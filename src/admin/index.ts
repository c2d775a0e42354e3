/** The admin API, and the log of its use. */
export { auditedRoutes } from './audit.ts';
export { type AdminDeps, openAdmin } from './open.ts';
