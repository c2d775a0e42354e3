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
  /** The versions of rooms that the other server knows; absent where it does not say. */
  readonly versions?: readonly string[] | undefined;
}

/** Prepares events for users of other servers, which these complete and sign. */
export class EventTemplates {
  readonly #deps: HandshakeDeps;

  constructor(deps: HandshakeDeps) {
    this.#deps = deps;
  }

  /**
   * An event with which a user can join, knock or leave, and the version of the room.
   * Source: server-server API, `GET /make_join/{roomId}/{userId}` and the like.
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
      throw forbidden(`${origin} does not speak for ${userId}`);
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
 * A room into which, or out of which, this server can help: not one of which it does not know the members yet.
 * @throws MatrixError M_NOT_FOUND, M_FORBIDDEN
 */
export async function roomForHandshake(
  access: RoomAccess,
  origin: string,
  roomId: string,
): Promise<RoomHead> {
  const head = await access.check(origin, roomId);
  if (head.isPartial) throw notFound('This server does not know all of the room yet');
  return head;
}

function checkVersion({ version }: RoomHead, versions: readonly string[] | undefined): void {
  if (versions === undefined || versions.includes(version.id)) return;
  const extra = { room_version: version.id };
  throw new MatrixError(
    400,
    'M_INCOMPATIBLE_ROOM_VERSION',
    'Your server does not know the room version',
    extra,
  );
}

/**
 * What lets a user into a restricted room: a user of this server who stands for it. Nothing for those who need no such
 * help; whether they may come in the authorization rules say.
 * Source: server-server API, "Restricted rooms".
 * @throws MatrixError M_FORBIDDEN, M_UNABLE_TO_AUTHORISE_JOIN, M_UNABLE_TO_GRANT_JOIN
 */
export async function joinAuthorisation(
  { engine, serverName }: Pick<HandshakeDeps, 'engine' | 'serverName'>,
  head: RoomHead,
  userId: string,
): Promise<{ readonly join_authorised_via_users_server?: string }> {
  const present = head.membership(userId);
  if (present === 'invite' || present === 'join' || present === 'ban') return {};
  const way = await checkRestrictedJoin(engine, head, userId, serverName);
  switch (way.kind) {
    case 'not needed':
      return {};
    case 'authorised':
      return { join_authorised_via_users_server: way.authoriser };
    case 'elsewhere':
      throw new MatrixError(400, 'M_UNABLE_TO_GRANT_JOIN', 'No user of this server may let you in');
    case 'unknown':
      throw new MatrixError(
        400,
        'M_UNABLE_TO_AUTHORISE_JOIN',
        'This server is not in the rooms whose members may join',
      );
    case 'refused':
      throw forbidden('You are in none of the rooms whose members may join');
  }
}
