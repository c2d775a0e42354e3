import {
  checkedRoutes,
  type Requester,
  type Route,
  type RouteContract,
  type UserRequest,
} from '../../kernel/http/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { User } from '../user-store.ts';
import type { Consents } from './consents.ts';
import { sendingOperations } from './sending-operations.ts';

export interface ConsentGateDeps {
  readonly consents: Consents;
  readonly account: (userId: string) => Promise<User | undefined>;
  /** Whether the server sends its notices to the user in this room. */
  readonly isNoticeRoom: (userId: string, roomId: string) => Promise<boolean>;
}

/** Operations that need consent. Leaving a room needs none. */
const gatedOperations: ReadonlySet<string> = new Set(sendingOperations);

/** Operations that join a room, each with the path parameter that names the room. */
const joinOperations: Readonly<Record<string, string>> = {
  joinRoom: 'roomIdOrAlias',
  joinRoomById: 'roomId',
};

/** Types of users whose consent is not needed. */
const exemptTypes: ReadonlySet<string | undefined> = new Set(['support', 'bot']);

/** Whether a user need not agree to the policy. */
export const isExemptFromConsent = ({ appservice, userType }: User): boolean =>
  appservice !== undefined || exemptTypes.has(userType);

/**
 * Returns `routes`, of which those that send events or join rooms refuse users who have not agreed to the current version
 * of the policy. Application services and their users are exempt, as in the reference server. Source: client-server API,
 * `M_CONSENT_NOT_GIVEN`; interface document, "user_consent".
 * @param message the option `block_events_error`
 */
export function consentGatedRoutes(
  routes: readonly Route[],
  deps: ConsentGateDeps,
  message: string,
): Route[] {
  const isGated = ({ operationId, actsAs }: RouteContract) =>
    gatedOperations.has(operationId ?? actsAs ?? '');
  return checkedRoutes(routes, isGated, (request, contract) => {
    const userId = checkedUser(request.requester);
    if (userId === undefined || deps.consents.isKnownToAgree(userId)) return undefined;
    return requireConsent(deps, userId, message, roomJoined(request, contract));
  });
}

/**
 * Requires the consent of a user who sends an event or joins a room. Users may join the room with the server's notices
 * without consent, because the link to the form is sent there.
 * @param message the option `block_events_error`
 * @param joinedRoom the room id or alias when the user joins a room
 * @throws MatrixError 403 M_CONSENT_NOT_GIVEN with the link to the form
 */
export async function requireConsent(
  { consents, account, isNoticeRoom }: ConsentGateDeps,
  userId: string,
  message: string,
  joinedRoom?: string,
): Promise<void> {
  if (await consents.hasAgreed(userId)) return;
  const user = await account(userId);
  if (user === undefined || isExemptFromConsent(user)) return;
  if (joinedRoom !== undefined && (await isNoticeRoom(userId, joinedRoom))) return;
  const uri = consents.link(userId);
  throw new MatrixError(403, 'M_CONSENT_NOT_GIVEN', message.replaceAll('%(consent_uri)s', uri), {
    consent_uri: uri,
  });
}

/**
 * Returns the user whose consent is needed: the administrator who acts as another user, or else the user; `undefined`
 * for application services.
 */
const checkedUser = ({ userId, administrator, appservice }: Requester) =>
  appservice === undefined ? (administrator ?? userId) : undefined;

/** Returns the room id or alias that a join names; `undefined` for other operations. */
function roomJoined({ params }: UserRequest, { operationId }: RouteContract): string | undefined {
  const name = joinOperations[operationId ?? ''];
  return name === undefined ? undefined : (params as Readonly<Record<string, string>>)[name];
}
