import {
  invalidParam,
  isUserId,
  type JsonObject,
  MatrixError,
  notFound,
  serverOfUser,
} from '../protocol/index.ts';
import {
  type AppendOptions,
  type EventToSend,
  isStorableText,
  type StoredEvent,
  transactionScope,
} from '../room-engine/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { NoticeRooms } from './notice-rooms.ts';
import type { NoticesUser } from './notices-user.ts';

export interface ServerNoticesDeps {
  readonly rooms: Pick<Rooms, 'engine' | 'clientEvents'>;
  readonly serverName: string;
  /** Whether that account exists on this server and is active. */
  readonly userExists: (userId: string) => Promise<boolean>;
  /** Absent: notices are off. */
  readonly sending?: { readonly user: NoticesUser; readonly noticeRooms: NoticeRooms } | undefined;
}

/** How a notice is sent. */
export interface NoticeManner {
  /** By default `m.room.message`. */
  readonly type?: string;
  /** Present for state events, for instance `m.room.pinned_events`. */
  readonly stateKey?: string | undefined;
  /** A repeated request with the same id, by the same device, does not send again. */
  readonly once?: { readonly userId: string; readonly deviceId: string | undefined; readonly txnId: string };
}

/** Types that are more than something to read: who is in the room is not for notices to say. */
const refusedTypes: ReadonlySet<string> = new Set(['m.room.member', 'm.room.redaction']);

const refused = (message: string) => new MatrixError(400, 'M_UNKNOWN', message);

/** Talks to users in the name of the server. Source: client-server API, "Server Notices". */
export class ServerNotices {
  readonly #deps: ServerNoticesDeps;

  constructor(deps: ServerNoticesDeps) {
    this.#deps = deps;
  }

  /** Whether the options say who sends notices. */
  get isEnabled(): boolean {
    return this.#deps.sending !== undefined;
  }

  /**
   * Sends something to a user, in the room that the server has for that; makes it, if there is none.
   * @returns the id of the event
   * @throws MatrixError M_UNKNOWN (400) when notices are off or the user is one of another server, M_INVALID_PARAM,
   * M_NOT_FOUND for no user, M_TOO_LARGE
   */
  async send(userId: string, content: JsonObject, manner: NoticeManner = {}): Promise<string> {
    const { once } = manner;
    const { engine } = this.#deps.rooms;
    if (!once) return (await this.#send(userId, content, manner)).event.eventId;
    if (!isStorableText(once.txnId)) throw invalidParam('The transaction id is not text');
    const scope = transactionScope(`notices of ${once.userId}`, once.deviceId);
    const sent = await engine.transactions.once(scope, 'notices', once.txnId, (transaction) =>
      this.#send(userId, content, manner, { transaction }),
    );
    const stored = typeof sent === 'number' ? await engine.events.get(sent) : sent;
    if (!stored) throw notFound('The notice has been sent, and deleted since');
    return stored.event.eventId;
  }

  async #send(
    userId: string,
    content: JsonObject,
    { type = 'm.room.message', stateKey }: NoticeManner,
    options?: AppendOptions,
  ): Promise<StoredEvent> {
    const { rooms, sending, serverName, userExists } = this.#deps;
    if (!sending) throw refused('Server notices are not enabled on this server');
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    if (serverOfUser(userId) !== serverName) {
      throw refused('Server notices can only be sent to users of this server');
    }
    if (refusedTypes.has(type)) throw invalidParam(`${type} can not be sent as a notice`);
    const sender = sending.user.userId;
    // Somebody may have had an account of that name before; the server does not talk to itself.
    if (userId === sender || !(await userExists(userId))) throw notFound('No such user');
    const roomId = await sending.noticeRooms.prepare(userId);
    const draft: EventToSend = { type, sender, content, ...(stateKey !== undefined && { stateKey }) };
    await rooms.clientEvents.relations.check(roomId, draft);
    return rooms.engine.timeline.append(roomId, draft, options);
  }

  /**
   * Keeps users in the room of their notices; nor may they turn its invite down.
   * Source: requirement document 2, "server_notices"; client-server API, "Server Notices".
   * @throws MatrixError 403 M_CANNOT_LEAVE_SERVER_NOTICE_ROOM
   */
  async checkDeparture(userId: string, roomId: string): Promise<void> {
    const { rooms, sending } = this.#deps;
    if (!sending || (await sending.noticeRooms.of(userId)) !== roomId) return;
    const membership = (await rooms.engine.heads.get(roomId))?.membership(userId);
    if (membership !== 'invite' && membership !== 'join') return;
    const said = membership === 'invite' ? 'reject this invite' : 'leave this room';
    throw new MatrixError(
      403,
      'M_CANNOT_LEAVE_SERVER_NOTICE_ROOM',
      `You can not ${said}: the server tells you here what you should know`,
    );
  }
}
