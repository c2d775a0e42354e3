import {
  badJson,
  forbidden,
  invalidParam,
  isEventId,
  type JsonObject,
  notFound,
  PowerLevels,
  type RoomEvent,
  suspended,
} from '../protocol/index.ts';
import type { RoomHead, RoomWriter } from '../room-engine/index.ts';
import { type EventToSend, isStorableText, transactionScope } from '../room-engine/index.ts';
import type { EventRelations } from './event-relations.ts';
import type { RequestingUser, Throttle } from './limits.ts';
import { setMembership } from './membership/membership-state.ts';
import type { Memberships } from './membership/memberships.ts';
import { PendingAnnotations } from './pending-annotations.ts';
import type { StateChecks } from './state-checks.ts';

/** Who sends. */
export interface Sender extends RequestingUser {
  readonly deviceId: string | undefined;
}

export interface SendingDeps {
  readonly engine: RoomWriter;
  readonly relations: EventRelations;
  readonly memberships: Memberships;
  readonly stateChecks: StateChecks;
  readonly throttle: Throttle;
}

/** Sends events for local users. Source: client-server API, "Sending events to a room" and "Redactions". */
export class Sending {
  readonly #deps: SendingDeps;
  readonly #annotations = new PendingAnnotations();

  constructor(deps: SendingDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a message event, once for each transaction id.
   * @param txnId absent: whenever it is asked for
   * @returns the event id
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
      if (typeof redacts !== 'string') throw badJson('redacts must be the id of an event');
      return this.redact(sender, roomId, redacts, content, txnId, originServerTs);
    }
    if (sender.isSuspended) throw suspended();
    const draft: EventToSend = { type, sender: sender.userId, content, originServerTs };
    return this.#annotations.guard(roomId, draft, (claim) =>
      this.#once(sender, roomId, draft, txnId, () => {
        this.#deps.throttle.message(sender);
        claim();
        return this.#deps.relations.check(roomId, draft);
      }),
    );
  }

  /**
   * Redacts an event: one's own, or with the power to.
   * @returns the id of the redaction
   * @throws MatrixError M_INVALID_PARAM for what is no event id, M_FORBIDDEN, M_NOT_FOUND for an event of another room
   */
  async redact(
    sender: Sender,
    roomId: string,
    eventId: string,
    content: JsonObject,
    txnId?: string,
    originServerTs?: number,
  ): Promise<string> {
    if (!isEventId(eventId)) throw invalidParam('This is not an event id');
    const { redacts: _redacts, ...rest } = content;
    const draft = {
      type: 'm.room.redaction',
      sender: sender.userId,
      content: rest,
      redacts: eventId,
      originServerTs,
    };
    return this.#once(sender, roomId, draft, txnId, () => this.#checkRedaction(sender, roomId, eventId));
  }

  /**
   * Sets an entry of the room's state; memberships are changed as their own endpoints do.
   * @returns the id of the event that says so, which may be an earlier one
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
    if (type === 'm.room.redaction') throw invalidParam('Redactions are not part of the state');
    const isOwnLeave =
      type === 'm.room.member' && stateKey === sender.userId && content['membership'] === 'leave';
    if (sender.isSuspended && !isOwnLeave) throw suspended();
    if (type === 'm.room.member') {
      const place = { roomId, userId: stateKey, originServerTs };
      return (await setMembership(this.#deps, sender, place, content)).event.eventId;
    }
    throttle.message(sender);
    if (stateKey === '') await this.#deps.stateChecks.check(sender.userId, roomId, type, content);
    const draft = { type, stateKey, sender: sender.userId, content, originServerTs };
    return (await engine.timeline.append(roomId, draft)).event.eventId;
  }

  /** @param check throws when the event may not be sent; not asked when it has been sent before */
  async #once(
    sender: Sender,
    roomId: string,
    draft: EventToSend,
    txnId: string | undefined,
    check: () => void | Promise<void>,
  ): Promise<string> {
    const { engine } = this.#deps;
    if (txnId === undefined) {
      await check();
      return (await engine.timeline.append(roomId, draft)).event.eventId;
    }
    if (!isStorableText(txnId)) throw invalidParam('The transaction id is not text');
    const scope = transactionScope(sender.userId, sender.deviceId);
    const path = `${roomId}/${draft.type}/${draft.redacts ?? ''}`;
    const sent = await engine.transactions.once(scope, path, txnId, async (transaction) => {
      const checking = check();
      if (checking) await checking;
      return engine.timeline.append(roomId, draft, { transaction });
    });
    const stored = typeof sent === 'number' ? await engine.events.get(sent) : sent;
    if (!stored) throw new Error('an event of a transaction is missing');
    return stored.event.eventId;
  }

  async #checkRedaction(sender: Sender, roomId: string, eventId: string): Promise<void> {
    const { engine, throttle } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (head?.membership(sender.userId) !== 'join') throw forbidden('You are not in this room');
    const target = await engine.events.getById(eventId);
    if (target && target.event.roomId !== roomId) throw notFound('There is no such event in this room');
    if (target?.event.type === 'm.room.create') throw forbidden('A room can not lose its beginning');
    // Without its lists it would shut out every server.
    if (target?.event.type === 'm.room.server_acl')
      throw forbidden('The rules about servers can only be replaced');
    if (target?.event.sender === sender.userId) return throttle.message(sender);
    if (sender.isSuspended) throw suspended();
    throttle.redactionOfOthers(sender);
    const levels = new PowerLevels(
      await this.#current(head, 'm.room.create'),
      await this.#current(head, 'm.room.power_levels'),
    );
    if (!levels.reaches(sender.userId, 'redact')) throw forbidden('You may not redact events of others');
  }

  async #current(head: RoomHead, type: string): Promise<RoomEvent | undefined> {
    const entry = head.entry(type, '');
    return entry && (await this.#deps.engine.events.get(entry.nid))?.event;
  }
}
