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
  /** Whether a user has an account on this server that is active. */
  readonly userExists: (userId: string) => Promise<boolean>;
  /** Absent when notices are disabled. */
  readonly sending?: { readonly user: NoticesUser; readonly noticeRooms: NoticeRooms } | undefined;
}

/** Options for sending a notice. */
export interface SendNoticeOptions {
  /** By default `m.room.message`. */
  readonly type?: string;
  /** Present for state events, for instance `m.room.pinned_events`. */
  readonly stateKey?: string | undefined;
  /** The device and the transaction id of a request: a repeated request sends no second notice. */
  readonly once?: { readonly userId: string; readonly deviceId: string | undefined; readonly txnId: string };
}

/** Types that notices must not have, since they change more than the timeline. */
const refusedTypes: ReadonlySet<string> = new Set(['m.room.member', 'm.room.redaction']);

const refused = (message: string) => new MatrixError(400, 'M_UNKNOWN', message);

/** Sends notices to users in the name of the server. Source: client-server API, "Server Notices". */
export class ServerNotices {
  readonly #deps: ServerNoticesDeps;

  constructor(deps: ServerNoticesDeps) {
    this.#deps = deps;
  }

  /** Whether the configuration enables notices. */
  get isEnabled(): boolean {
    return this.#deps.sending !== undefined;
  }

  /**
   * Checks that notices of a type can be sent.
   * @throws MatrixError M_UNKNOWN (400) when notices are disabled, M_INVALID_PARAM for the type
   */
  check(type: string): void {
    this.#sendingOf(type);
  }

  /**
   * Sends a notice to a user, in their notice room; makes the room if there is none.
   * @returns the event id
   * @throws MatrixError M_UNKNOWN (400) when notices are disabled or the user is remote, M_INVALID_PARAM for an invalid
   * type, user id or transaction id, M_NOT_FOUND for an unknown user or when the notice of a repeated request has been
   * deleted, M_TOO_LARGE
   */
  async send(userId: string, content: JsonObject, options: SendNoticeOptions = {}): Promise<string> {
    const { once } = options;
    const { engine } = this.#deps.rooms;
    if (!once) return (await this.#send(userId, content, options)).event.eventId;
    if (!isStorableText(once.txnId)) throw invalidParam('The transaction id contains invalid characters');
    const scope = transactionScope(`notices of ${once.userId}`, once.deviceId);
    const sent = await engine.transactions.once(scope, 'notices', once.txnId, (transaction) =>
      this.#send(userId, content, options, { transaction }),
    );
    const stored = typeof sent === 'number' ? await engine.events.get(sent) : sent;
    if (!stored) throw notFound('The notice was sent and has been deleted since');
    return stored.event.eventId;
  }

  async #send(
    userId: string,
    content: JsonObject,
    { type = 'm.room.message', stateKey }: SendNoticeOptions,
    options?: AppendOptions,
  ): Promise<StoredEvent> {
    const { rooms, serverName, userExists } = this.#deps;
    const sending = this.#sendingOf(type);
    if (!isUserId(userId)) throw invalidParam(`${userId} is not a user id`);
    if (serverOfUser(userId) !== serverName) {
      throw refused('Server notices can only be sent to users of this server');
    }
    const sender = sending.user.userId;
    // Refuses notices to the notices user, which may also exist as an account.
    if (userId === sender || !(await userExists(userId)))
      throw notFound('There is no such user, or the notices are sent by this user');
    const roomId = await sending.noticeRooms.prepare(userId);
    const draft: EventToSend = { type, sender, content, ...(stateKey !== undefined && { stateKey }) };
    await rooms.clientEvents.relations.check(roomId, draft);
    return rooms.engine.timeline.append(roomId, draft, options);
  }

  #sendingOf(type: string) {
    const { sending } = this.#deps;
    if (!sending) throw refused('Server notices are not enabled on this server');
    if (refusedTypes.has(type)) throw invalidParam(`Events of type ${type} cannot be sent as notices`);
    return sending;
  }
}
