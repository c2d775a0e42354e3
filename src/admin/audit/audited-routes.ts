import {
  pathsOf,
  Reply,
  type Requester,
  type Route,
  type RouteRequest,
  trackAdministratorRights,
} from '../../kernel/http/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { isUserId, MatrixError } from '../../protocol/index.ts';
import type { AuditLog } from './audit-log.ts';

/** Names of the path parameters that contain secrets. */
const secretParams: ReadonlySet<string> = new Set(['token']);

/** The `operationId` of registrations with the shared secret. These registrations can create administrators. */
const registrationOperation = 'registerBySharedSecret';

/** The `operationId` of the client API's endpoint that shows the addresses of a user. */
const whoisOperation = 'getWhoIs';

/** The `operationId`s of downloads. Administrators can also download quarantined files. */
const downloadOperations: ReadonlySet<string> = new Set(['getContentAuthed', 'getContentOverrideNameAuthed']);

/** A request. Requests that are refused before their handler is called have no query and no body. */
type AnyRequest = Omit<RouteRequest, 'query' | 'body'> & {
  readonly query?: unknown;
  readonly body?: unknown;
};

/**
 * Stores and logs each authenticated use of the admin API: the administrator, the operation, its target, the IP address of the
 * client, and the status of the response. For requests with a session that an administrator opened as another user, the
 * administrator is stored. Bodies and queries are left out, because they contain secrets. Only the user whom a body
 * names as `user_id` is stored. These requests are stored as well: refused requests of users who are not
 * administrators; registrations with the shared secret; requests of administrators for the addresses of other users;
 * downloads of quarantined files; and other requests that are permitted only because the user is an administrator.
 */
export function auditedRoutes(routes: readonly Route[], audit: AuditLog, log: Logger): Route[] {
  return routes.map((found) => {
    const { operationId, auth } = found.contract;
    if (operationId === registrationOperation) return auditedRegistration(found, audit);
    if (operationId === whoisOperation) return audited(found, audit, log, isAboutOther);
    if (operationId !== undefined && downloadOperations.has(operationId))
      return audited(found, audit, log, readsQuarantined);
    if (auth === 'admin') return audited(found, audit, log, isAuthenticated);
    return auth === 'user' || auth === 'guest' ? auditedIfPrivileged(found, audit, log) : found;
  });
}

const isAuthenticated = ({ requester }: AnyRequest) => requester !== undefined;

const isAboutOther = ({ requester, params }: AnyRequest) =>
  requesterOf(requester)?.userId !== (params as Readonly<Record<string, string>>)['userId'];

const readsQuarantined = ({ query }: AnyRequest) =>
  (query as { readonly admin_unsafely_bypass_quarantine?: boolean } | undefined)
    ?.admin_unsafely_bypass_quarantine === true;

const requesterOf = (requester: unknown) => requester as Requester | undefined;

/** Returns a route that stores and logs the requests for which `isAudited` holds, also those that are refused. */
function audited(
  original: Route,
  audit: AuditLog,
  log: Logger,
  isAudited: (request: AnyRequest) => boolean,
): Route {
  const { contract, handler } = original;
  const { record, recordFailure } = recorder(original, audit, log);
  const ifAudited = async (request: AnyRequest, recorded: () => Promise<void>) => {
    if (isAudited(request)) await recorded();
  };
  return {
    contract: {
      ...contract,
      refused: (request, error) => ifAudited(request, () => recordFailure(request, error)),
    },
    async handler(request) {
      try {
        const result = await handler(request);
        await ifAudited(request, () => record(request, statusOf(result)));
        return result;
      } catch (error) {
        await ifAudited(request, () => recordFailure(request, error));
        throw error;
      }
    },
  };
}

/** Stores a request of the client API if it used a right that only administrators have. */
function auditedIfPrivileged(original: Route, audit: AuditLog, log: Logger): Route {
  const { contract, handler } = original;
  const { record, recordFailure } = recorder(original, audit, log);
  const tracked = async (request: RouteRequest) => {
    const { result, isUsed } = trackAdministratorRights(async () => handler(request));
    try {
      const value = await result;
      if (isUsed()) await record(request, statusOf(value));
      return value;
    } catch (error) {
      if (isUsed()) await recordFailure(request, error);
      throw error;
    }
  };
  return {
    contract,
    handler: (request) => (requesterOf(request.requester)?.isAdmin ? tracked(request) : handler(request)),
  };
}

const statusOf = (result: unknown): number => (result instanceof Reply ? result.status : 200);

/** Returns functions that store and log the requests of a route. */
function recorder(original: Route, audit: AuditLog, log: Logger) {
  const { contract } = original;
  const { method } = contract;
  const template = pathsOf(original)[0]!;
  const action = `${method} ${template}`;
  const path = template.replaceAll(/:(\w+)/g, '{$1}');
  const operation = contract.operationId ?? action;
  const record = async (request: AnyRequest, status: number, errcode?: string) => {
    const requester = requesterOf(request.requester);
    const userId = requester?.userId ?? '';
    const administrator = requester?.administrator ?? userId;
    const { ip } = request;
    const target = targetOf(request);
    const line = {
      administrator,
      ...(administrator !== userId && { as: userId }),
      action,
      target,
      ip,
      status,
      ...(errcode !== undefined && { errcode }),
    };
    log.info(line, 'Admin API request');
    const values = Object.values(target).join(' ');
    await audit.record({ administrator, method, path, operation, target: values || null, status, ip });
  };
  const recordFailure = (request: AnyRequest, error: unknown) =>
    error instanceof MatrixError
      ? record(request, error.status, error.errcode)
      : record(request, 500, 'M_UNKNOWN');
  return { record, recordFailure };
}

/** Stores successful registrations only: clients without the secret can send any number of requests that fail. */
function auditedRegistration({ contract, handler }: Route, audit: AuditLog): Route {
  return {
    contract,
    async handler(request) {
      const result = await handler(request);
      const { user_id: userId } = (result instanceof Reply ? result.body : result) as { user_id?: string };
      await audit.record({
        administrator: '<registration_shared_secret>',
        method: contract.method,
        path: pathsOf({ contract, handler })[0]!,
        operation: registrationOperation,
        target: userId ?? null,
        status: 200,
        ip: request.ip,
      });
      return result;
    },
  };
}

/**
 * Returns the path parameters of a request, with secrets masked, and the `user_id` of its body. The bodies of joins,
 * for instance, name the user who joins by this member.
 */
function targetOf({ params, body }: AnyRequest): Readonly<Record<string, string>> {
  const target = Object.entries(params as Readonly<Record<string, string>>).map(([name, value]) => [
    name,
    secretParams.has(name) ? '<secret>' : value,
  ]);
  const { user_id: userId } = (body ?? {}) as { readonly user_id?: unknown };
  if (typeof userId === 'string' && isUserId(userId)) target.push(['userId', userId]);
  return Object.fromEntries(target);
}
