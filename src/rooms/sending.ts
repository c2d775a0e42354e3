import { type Randomness, randomString } from '../kernel/randomness.ts';
import {
  badJson,
  forbidden,
  invalidParam,
  isEventId,
  type JsonObject,
  MatrixError,
  PowerLevels,
  type RoomEvent,
  relationOf,
  suspended,
} from '../protocol/index.ts';
import type { AppendOptions, RoomHead, RoomWriter, StoredEvent } from '../room-engine/index.ts';
import { type EventToSend, isStorableText, transactionScope } from '../room-engine/index.ts';
import type { EventRelations } from './event-relations.ts';
import type { RequestingUser, Throttle } from './limits.ts';
import { setMembership } from './membership/membership-state.ts';
import type { Memberships } from './membership/memberships.ts';
import { PendingAnnotations } from './pending-annotations.ts';
import type { StateChecks } from './state-checks.ts';

/** The user who sends an event, with the device. */
export interface Sender extends RequestingUser {
  readonly deviceId: string | undefined;
}

export interface SendingDeps {
  readonly engine: RoomWriter;
  readonly relations: EventRelations;
  readonly memberships: Memberships;
  readonly stateChecks: StateChecks;
  readonly throttle: Throttle;
  readonly randomness: Randomness;
}

/**
 * Sends events for local users. The checks of an event, in this order:
 * 1. The sender is not suspended (for redactions: step 4). Events of shadow-banned users are not sent (the response
 *   contains an event id that no event has), except membership events other than invites.
 * 2. The transaction id, which state events do not have, is new; a repeated request is answered with the earlier event
 *   id, without the later checks.
 * 3. The rate limit allows it (`Throttle`). Requests also call `checkRate` before their body is read.
 * 4. By kind of event: the sender of a message with a relation is in the room, and the relation is valid and no
 *   duplicate annotation; a redaction has a target that the sender may redact; a state event has valid content
 *   (`StateChecks`).
 * 5. The engine applies the authorization rules and its own checks when it appends the event.
 *
 * For redactions, steps 3 and 4 are one step, because the rate limit depends on the target.
 * Source: client-server API, "Sending events to a room" and "Redactions".
 */
export class Sending {
  readonly #deps: SendingDeps;
  readonly #annotations = new PendingAnnotations();

  constructor(deps: SendingDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a message event, once for each transaction id. `m.room.redaction` is handled by `redact`.
   * @param txnId absent: every call sends an event
   * @returns the event id
   * @throws MatrixError M_USER_SUSPENDED, M_LIMIT_EXCEEDED, M_DUPLICATE_ANNOTATION, M_BAD_JSON, M_FORBIDDEN,
   *   M_INVALID_PARAM for an invalid transaction id, and for redactions the errors of `redact`
   */
  async message(
    sender: Sender,
    roomId: string,
    message: { type: string; content: JsonObject; originServerTs?: number | undefined },
    txnId?: string,
  ): Promise<string> {
    const { type, content, originServerTs } = message;
    if (type === 'm.room.redaction') {
      const { redacts } = content;
      if (typeof redacts !== 'string') throw badJson('redacts must be an event id');
      return this.redact(sender, roomId, redacts, content, txnId, originServerTs);
    }
    if (sender.isSuspended) throw suspended();
    if (sender.isShadowBanned) return this.#answerAsIfSent(sender, roomId);
    const draft: EventToSend = { type, sender: sender.userId, content, originServerTs };
    return this.#once(sender, roomId, draft, txnId, (options) =>
      this.#appendMessage(sender, roomId, draft, options),
    );
  }

  /**
   * Refuses a message or state event before its content is read, when the rate limit refuses it in any case. Passes a
   * transaction id that was sent before, so that a repeated request is answered, redactions, whose limit depends on
   * their target, and membership events, which have limits of their own.
   * @throws MatrixError M_LIMIT_EXCEEDED
   */
  checkRate(sender: Sender, roomId: string, type: string, txnId?: string): Promise<void> | undefined {
    if (type === 'm.room.redaction' || type === 'm.room.member') return undefined;
    try {
      this.#deps.throttle.checkMessage(sender);
      return undefined;
    } catch (refusal) {
      if (txnId === undefined) throw refusal;
      return this.#requireSent(sender, roomId, type, txnId, refusal);
    }
  }

  /**
   * Redacts an event of the sender, or of another user if the sender has the `redact` power level.
   * @returns the event id of the redaction
   * @throws MatrixError M_INVALID_PARAM for an invalid event id or transaction id, M_UNKNOWN for an event of another
   *   room, M_FORBIDDEN, M_USER_SUSPENDED, M_LIMIT_EXCEEDED
   */
  async redact(
    sender: Sender,
    roomId: string,
    eventId: string,
    content: JsonObject,
    txnId?: string,
    originServerTs?: number,
  ): Promise<string> {
    if (!isEventId(eventId)) throw invalidParam('Invalid event ID');
    if (sender.isShadowBanned) return this.#answerAsIfSent(sender, roomId);
    const { redacts: _redacts, ...rest } = content;
    const draft = {
      type: 'm.room.redaction',
      sender: sender.userId,
      content: rest,
      redacts: eventId,
      originServerTs,
    };
    return this.#once(sender, roomId, draft, txnId, async (options) => {
      await this.#checkRedaction(sender, roomId, eventId);
      return this.#deps.engine.timeline.append(roomId, draft, options);
    });
  }

  /**
   * Sends a state event; `m.room.member` has the same effects as the membership endpoints.
   * @returns the event id; the id of the current event when the content does not change
   */
  async state(
    sender: Sender,
    roomId: string,
    {
      type,
      stateKey,
      originServerTs,
    }: { type: string; stateKey: string; originServerTs?: number | undefined },
    content: JsonObject,
  ): Promise<string> {
    const { engine, throttle } = this.#deps;
    if (type === 'm.room.redaction') throw invalidParam('m.room.redaction cannot be sent as a state event');
    if (type === 'm.room.create') throw invalidParam('m.room.create cannot be sent again');
    const isOwnLeave =
      type === 'm.room.member' && stateKey === sender.userId && content['membership'] === 'leave';
    if (sender.isSuspended && !isOwnLeave) throw suspended();
    const isInvite = type === 'm.room.member' && content['membership'] === 'invite';
    if (sender.isShadowBanned && (type !== 'm.room.member' || isInvite)) {
      return this.#answerAsIfSent(sender, roomId);
    }
    if (type === 'm.room.member') {
      const target = { roomId, userId: stateKey, originServerTs };
      return (await setMembership(this.#deps, sender, target, content)).event.eventId;
    }
    throttle.message(sender);
    if (stateKey === '') await this.#deps.stateChecks.check(sender.userId, roomId, type, content);
    if (stateKey.startsWith('@') && stateKey !== sender.userId) {
      await this.#deps.stateChecks.checkOwner(roomId, stateKey);
    }
    const draft = { type, stateKey, sender: sender.userId, content, originServerTs };
    return (await engine.timeline.append(roomId, draft)).event.eventId;
  }

  /** Answers a shadow-banned user as if the event had been sent. @returns an event id that no event has */
  async #answerAsIfSent(sender: Sender, roomId: string): Promise<string> {
    const { engine, throttle, randomness } = this.#deps;
    throttle.message(sender);
    requireJoined(await engine.heads.get(roomId), sender.userId);
    return `$${randomString(randomness, 43)}`;
  }

  /** Throws `refusal` unless the sender's device has sent a message with the transaction id. */
  async #requireSent(sender: Sender, roomId: string, type: string, txnId: string, refusal: unknown) {
    const scope = transactionScope(sender.userId, sender.deviceId);
    const path = transactionPath(roomId, { type });
    if (!(await this.#deps.engine.transactions.has(scope, path, txnId))) throw refusal;
  }

  /**
   * Sends an event, or returns the id of the event that was sent with the same transaction id before.
   * @param append checks and appends the event; not called for a repeated transaction id
   */
  async #once(
    sender: Sender,
    roomId: string,
    draft: EventToSend,
    txnId: string | undefined,
    append: (options?: AppendOptions) => Promise<StoredEvent>,
  ): Promise<string> {
    if (txnId === undefined) return (await append()).event.eventId;
    const { engine } = this.#deps;
    if (!isStorableText(txnId)) throw invalidParam('The transaction ID contains invalid characters');
    const scope = transactionScope(sender.userId, sender.deviceId);
    const sent = await engine.transactions.once(scope, transactionPath(roomId, draft), txnId, (transaction) =>
      append({ transaction }),
    );
    const stored = typeof sent === 'number' ? await engine.events.get(sent) : sent;
    if (!stored) throw new Error('the event of a transaction id is missing');
    return stored.event.eventId;
  }

  async #appendMessage(
    sender: Sender,
    roomId: string,
    draft: EventToSend,
    options: AppendOptions | undefined,
  ): Promise<StoredEvent> {
    const { engine, relations, throttle } = this.#deps;
    throttle.message(sender);
    const claim = this.#annotations.claim(roomId, draft);
    try {
      // Users who are not in the room must not learn what the related event is.
      if (relationOf(draft.content)) requireJoined(await engine.heads.get(roomId), sender.userId);
      await relations.check(roomId, draft);
      return await engine.timeline.append(roomId, draft, options);
    } finally {
      this.#annotations.release(claim);
    }
  }

  async #checkRedaction(sender: Sender, roomId: string, eventId: string): Promise<void> {
    const { engine, throttle } = this.#deps;
    const head = requireJoined(await engine.heads.get(roomId), sender.userId);
    const target = await engine.events.getById(eventId);
    if (target && target.event.roomId !== roomId) {
      throw new MatrixError(400, 'M_UNKNOWN', 'Events of another room cannot be redacted');
    }
    if (target?.event.type === 'm.room.create') throw forbidden('m.room.create cannot be redacted');
    // A redaction would remove the lists of the ACL, so that the ACL would deny every server.
    if (target?.event.type === 'm.room.server_acl')
      throw forbidden('m.room.server_acl cannot be redacted: send a new m.room.server_acl event instead');
    if (target?.event.sender === sender.userId) return throttle.message(sender);
    if (sender.isSuspended) throw suspended();
    throttle.redactionOfOthers(sender);
    const levels = new PowerLevels(
      await this.#currentEvent(head, 'm.room.create'),
      await this.#currentEvent(head, 'm.room.power_levels'),
    );
    if (!levels.reaches(sender.userId, 'redact'))
      throw forbidden('You do not have the power level to redact events of other users');
  }

  async #currentEvent(head: RoomHead, type: string): Promise<RoomEvent | undefined> {
    const entry = head.entry(type, '');
    return entry && (await this.#deps.engine.events.get(entry.nid))?.event;
  }
}

/** Returns the room. @throws MatrixError M_FORBIDDEN for an unknown room, and for users who are not joined */
function requireJoined(head: RoomHead | undefined, userId: string): RoomHead {
  if (head?.membership(userId) !== 'join') throw forbidden('You are not in this room');
  return head;
}

/** Returns the path within which a transaction id is unique. */
const transactionPath = (roomId: string, { type, redacts = '' }: Pick<EventToSend, 'type' | 'redacts'>) =>
  `${roomId}/${type}/${redacts}`;
