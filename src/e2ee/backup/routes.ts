import type { Route } from '../../kernel/http/index.ts';
import type { KeyBackups } from './key-backups.ts';
import { backupKeyRoutes } from './key-routes.ts';
import { backupVersionRoutes } from './version-routes.ts';

/** Returns the routes of key backups. Source: client-server API, "Server-side key backups". */
export function backupRoutes(backups: KeyBackups): Route[] {
  return [...backupVersionRoutes(backups), ...backupKeyRoutes(backups)];
}
