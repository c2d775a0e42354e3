import { Reply, type Route, type RouteRequest } from '../kernel/http/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { MatrixError } from '../protocol/index.ts';

/** Names of the path parameters that contain secrets. */
const secretParams: ReadonlySet<string> = new Set(['token']);

/**
 * Logs each request of an administrator: the administrator, the action, its target, the address of the client, and the
 * status of the response. Bodies and queries are left out, because they contain secrets.
 */
export function auditedRoutes(routes: readonly Route[], log: Logger): Route[] {
  return routes.map((found) => (found.contract.auth === 'admin' ? audited(found, log) : found));
}

function audited({ contract, handler }: Route, log: Logger): Route {
  const path = typeof contract.path === 'string' ? contract.path : contract.path[0];
  const action = `${contract.method} ${path}`;
  return {
    contract,
    async handler(request) {
      try {
        const result = await handler(request);
        log.info(entryOf(request, action, result instanceof Reply ? result.status : 200), 'Administration');
        return result;
      } catch (error) {
        const status = error instanceof MatrixError ? error.status : 500;
        const errcode = error instanceof MatrixError ? error.errcode : 'M_UNKNOWN';
        log.info({ ...entryOf(request, action, status), errcode }, 'Administration');
        throw error;
      }
    },
  };
}

function entryOf(request: RouteRequest, action: string, status: number) {
  const { params, ip } = request;
  const requester = request.requester as RouteRequest['requester'] & { readonly userId?: string };
  const target = Object.entries(params as Readonly<Record<string, string>>).map(([name, value]) => [
    name,
    secretParams.has(name) ? '<secret>' : value,
  ]);
  return { administrator: requester?.userId, action, target: Object.fromEntries(target), ip, status };
}
