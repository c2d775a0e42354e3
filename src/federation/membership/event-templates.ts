import {
  forbidden,
  isUserId,
  type JsonObject,
  MatrixError,
  notFound,
  serverOfUser,
} from '../../protocol/index.ts';
import { checkRestrictedJoin, type RoomHead } from '../../room-engine/index.ts';
import type { RoomAccess } from '../room-access.ts';
import type { HandshakeDeps, HandshakeMembership } from './handshake-deps.ts';

export interface TemplateRequest {
  readonly roomId: string;
  readonly userId: string;
  /** Room versions that the other server supports; absent when it does not list them. */
  readonly versions?: readonly string[] | undefined;
}

/** Prepares the event templates of make_join, make_knock and make_leave, which the other server completes and signs. */
export class EventTemplates {
  readonly #deps: HandshakeDeps;

  constructor(deps: HandshakeDeps) {
    this.#deps = deps;
  }

  /**
   * Returns an event template for a join, knock or leave, and the room version.
   * Source: server-server API, `GET /make_join/{roomId}/{userId}`, `GET /make_knock/…`, `GET /make_leave/…`.
   * @throws MatrixError M_NOT_FOUND, M_FORBIDDEN, M_INCOMPATIBLE_ROOM_VERSION, M_UNABLE_TO_AUTHORISE_JOIN,
   * M_UNABLE_TO_GRANT_JOIN
   */
  async prepare(
    origin: string,
    membership: HandshakeMembership,
    { roomId, userId, versions }: TemplateRequest,
  ): Promise<{ readonly room_version: string; readonly event: JsonObject }> {
    const { access, engine, serverName } = this.#deps;
    if (!isUserId(userId) || serverOfUser(userId) !== origin) {
      throw forbidden(`${userId} is not a user of ${origin}`);
    }
    const head = await roomForHandshake(access, origin, roomId);
    checkVersion(head, versions);
    const authorised = membership === 'join' ? await joinAuthorisation(this.#deps, head, userId) : {};
    const { event } = await engine.placement.eventTemplate(roomId, {
      type: 'm.room.member',
      stateKey: userId,
      sender: userId,
      content: { membership, ...authorised },
    });
    return { room_version: head.version.id, event: { ...event, origin: serverName } };
  }
}

/**
 * Returns the head of a room for a handshake.
 * @throws MatrixError M_NOT_FOUND, also while the state of the room is partial; M_FORBIDDEN
 */
export async function roomForHandshake(
  access: RoomAccess,
  origin: string,
  roomId: string,
): Promise<RoomHead> {
  const head = await access.check(origin, roomId);
  if (head.isPartial) throw notFound('This server does not have the full state of the room yet');
  return head;
}

function checkVersion({ version }: RoomHead, versions: readonly string[] | undefined): void {
  if (versions === undefined || versions.includes(version.id)) return;
  const extra = { room_version: version.id };
  throw new MatrixError(
    400,
    'M_INCOMPATIBLE_ROOM_VERSION',
    'Your server does not support the room version',
    extra,
  );
}

/**
 * Returns what the content of a join to a restricted room must contain: the local user who authorises the join, or
 * nothing when no authorisation is needed. The authorization rules decide whether the user may join.
 * Source: server-server API, "Restricted rooms".
 * @throws MatrixError M_FORBIDDEN, M_UNABLE_TO_AUTHORISE_JOIN, M_UNABLE_TO_GRANT_JOIN
 */
export async function joinAuthorisation(
  { engine, serverName }: Pick<HandshakeDeps, 'engine' | 'serverName'>,
  head: RoomHead,
  userId: string,
): Promise<{ readonly join_authorised_via_users_server?: string }> {
  const currentMembership = head.membership(userId);
  if (currentMembership === 'invite' || currentMembership === 'join' || currentMembership === 'ban')
    return {};
  const restriction = await checkRestrictedJoin(engine, head, userId, serverName);
  switch (restriction.kind) {
    case 'not needed':
      return {};
    case 'authorised':
      return { join_authorised_via_users_server: restriction.authoriser };
    case 'elsewhere':
      throw new MatrixError(400, 'M_UNABLE_TO_GRANT_JOIN', 'No local user can authorise the join');
    case 'unknown':
      throw new MatrixError(
        400,
        'M_UNABLE_TO_AUTHORISE_JOIN',
        'This server is not in the rooms whose members may join',
      );
    case 'refused':
      throw forbidden('You are not a member of any room whose members may join');
  }
}
