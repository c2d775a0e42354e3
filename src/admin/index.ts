/** The admin API and its audit log. */

export type { AdminDeps } from './areas/area-deps.ts';
export type { AuditLog } from './audit/audit-log.ts';
export { auditedRoutes } from './audit/audited-routes.ts';
export { openAdmin } from './open.ts';
export type { EffectiveOption } from './server/effective-configuration-route.ts';
export { openServerViews } from './server/server-views.ts';
