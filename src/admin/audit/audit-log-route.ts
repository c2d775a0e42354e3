import { Type } from 'typebox';
import { type Route, route } from '../../kernel/http/index.ts';
import { direction, maxRows } from '../paging/page-query.ts';
import type { AuditLog, StoredAuditEntry } from './audit-log.ts';

const nonNegative = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });

const entry = Type.Object({
  id: Type.Integer(),
  ts: Type.Integer(),
  admin: Type.String(),
  method: Type.String(),
  path: Type.String(),
  operation: Type.String(),
  target: Type.Union([Type.String(), Type.Null()]),
  status: Type.Integer(),
  ip: Type.String(),
  requests: Type.Integer(),
  last_ts: Type.Integer(),
});

/**
 * Lists the entries of the audit log, by default the newest first. `from` is the id of the last entry of the previous page.
 * Entries that are stored between two requests therefore do not shift the pages.
 */
export function auditLogRoute(audit: AuditLog): Route {
  return route(
    {
      operationId: 'listAuditLog',
      method: 'GET',
      path: '/_server/admin/v1/audit_log',
      auth: 'admin',
      query: Type.Object({
        from: Type.Optional(nonNegative),
        limit: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 100 }),
        dir: Type.Optional(direction),
        admin: Type.Optional(Type.String()),
        method: Type.Optional(Type.String()),
        operation: Type.Optional(Type.String()),
        target: Type.Optional(Type.String()),
        status: Type.Optional(Type.Integer({ minimum: 100, maximum: 599 })),
        ip: Type.Optional(Type.String()),
        changes: Type.Optional(Type.Boolean()),
        from_ts: Type.Optional(nonNegative),
        until_ts: Type.Optional(nonNegative),
      }),
      response: Type.Object({
        entries: Type.Array(entry),
        total: Type.Integer(),
        next_token: Type.Optional(Type.String()),
      }),
    },
    async ({ query }) => {
      const { method, operation, target, status, ip, changes } = query;
      const filter = {
        administrator: query.admin,
        method,
        operation,
        target,
        status,
        ip,
        changes,
        from: query.from_ts,
        until: query.until_ts,
      };
      const limit = Math.min(query.limit, maxRows);
      const page = { after: query.from, oldestFirst: query.dir === 'f' };
      const [found, total] = await Promise.all([
        audit.page(filter, { ...page, limit: limit + 1 }),
        audit.count(filter),
      ]);
      const entries = found.slice(0, limit);
      const last = found.length > limit ? entries.at(-1) : undefined;
      return { entries: entries.map(entryJson), total, ...(last && { next_token: String(last.id) }) };
    },
  );
}

const entryJson = (stored: StoredAuditEntry) => ({
  id: stored.id,
  ts: stored.ts,
  admin: stored.administrator,
  method: stored.method,
  path: stored.path,
  operation: stored.operation,
  target: stored.target,
  status: stored.status,
  ip: stored.ip,
  requests: stored.requests,
  last_ts: stored.last_ts,
});
