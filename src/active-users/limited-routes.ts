import { sendingOperations } from '../accounts/index.ts';
import { checkedRoutes, type Route, type RouteContract } from '../kernel/http/index.ts';
import type { UsageLimit } from './usage-limit.ts';

/**
 * Operations that are refused to users beyond the limit, as in the reference server: syncing, and sending events. These
 * users can still read rooms, log out and deactivate their accounts.
 */
export const limitedOperations: ReadonlySet<string> = new Set([
  'sync',
  'initialSync',
  'getEvents',
  ...sendingOperations,
  'leaveRoom',
]);

/** Recognizes sliding sync, which has no operation id in the specification. */
const isSlidingSync = ({ path }: RouteContract) =>
  typeof path === 'string' && path.endsWith('simplified_msc3575/sync');

const isLimited = (contract: RouteContract) =>
  limitedOperations.has(contract.operationId ?? contract.actsAs ?? '') || isSlidingSync(contract);

/** Returns `routes`, of which those that sync or send events refuse users beyond the limit. */
export const limitedRoutes = (routes: readonly Route[], limit: UsageLimit): Route[] =>
  checkedRoutes(routes, isLimited, ({ requester }) => limit.checkRequester(requester));
