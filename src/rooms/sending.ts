import {
  badJson,
  forbidden,
  type JsonObject,
  MatrixError,
  notFound,
  PowerLevels,
  type RoomEvent,
} from '../protocol/index.ts';
import type { RoomAliases } from './aliases/room-aliases.ts';
import type { RoomEngine } from './engine.ts';
import type { Memberships } from './membership/memberships.ts';
import type { EventToSend } from './timeline/append.ts';
import type { RoomHead } from './timeline/room-head.ts';
import { transactionScope } from './timeline/transaction-ids.ts';

/** Who sends. */
export interface Sender {
  readonly userId: string;
  readonly deviceId: string | undefined;
}

/** Sends events for local users. Source: client-server API, "Sending events to a room" and "Redactions". */
export class Sending {
  readonly #engine: RoomEngine;
  readonly #memberships: Memberships;
  readonly #aliases: RoomAliases;

  constructor(engine: RoomEngine, memberships: Memberships, aliases: RoomAliases) {
    this.#engine = engine;
    this.#memberships = memberships;
    this.#aliases = aliases;
  }

  /** Sends a message event, once for each transaction id. @returns the event id */
  async message(
    sender: Sender,
    roomId: string,
    message: { type: string; content: JsonObject; originServerTs?: number },
    txnId: string,
  ): Promise<string> {
    const { type, content, originServerTs } = message;
    if (type === 'm.room.redaction' && typeof content['redacts'] === 'string') {
      return this.redact(sender, roomId, content['redacts'], content, txnId);
    }
    const draft: EventToSend = {
      type,
      sender: sender.userId,
      content,
      ...(originServerTs === undefined ? undefined : { originServerTs }),
    };
    return this.#once(sender, roomId, draft, txnId);
  }

  /** Redacts an event: one's own, or with the power to. @returns the id of the redaction */
  async redact(
    sender: Sender,
    roomId: string,
    eventId: string,
    content: JsonObject,
    txnId: string,
  ): Promise<string> {
    const head = await this.#engine.heads.get(roomId);
    if (head?.membership(sender.userId) !== 'join') throw forbidden('You are not in this room');
    const target = await this.#engine.events.getById(eventId);
    if (target && target.event.roomId !== roomId) throw notFound('There is no such event in this room');
    if (target?.event.sender !== sender.userId) await this.#checkRedactLevel(head, sender.userId);
    const { redacts: _redacts, ...rest } = content;
    const draft = { type: 'm.room.redaction', sender: sender.userId, content: rest, redacts: eventId };
    return this.#once(sender, roomId, draft, txnId);
  }

  /**
   * Sets an entry of the room's state; memberships are changed as their own endpoints do.
   * @returns the id of the event that says so, which may be an earlier one
   */
  async state(
    sender: Sender,
    roomId: string,
    { type, stateKey }: { type: string; stateKey: string },
    content: JsonObject,
  ): Promise<string> {
    if (type === 'm.room.member' && stateKey === sender.userId && content['membership'] === 'join') {
      const joined = await this.#memberships.join(sender.userId, roomId, { given: content });
      if (joined) return joined.event.eventId;
    }
    if (type === 'm.room.canonical_alias') await this.#checkAliases(roomId, content);
    const draft = { type, stateKey, sender: sender.userId, content };
    return (await this.#engine.timeline.append(roomId, draft)).event.eventId;
  }

  async #once(sender: Sender, roomId: string, draft: EventToSend, txnId: string): Promise<string> {
    const scope = transactionScope(sender.userId, sender.deviceId);
    const path = `${roomId}/${draft.type}/${draft.redacts ?? ''}`;
    const sent = await this.#engine.transactions.once(scope, path, txnId, (transaction) =>
      this.#engine.timeline.append(roomId, draft, { transaction }),
    );
    const stored = typeof sent === 'number' ? await this.#engine.events.get(sent) : sent;
    if (!stored) throw new Error('an event of a transaction is missing');
    return stored.event.eventId;
  }

  async #checkRedactLevel(head: RoomHead, userId: string): Promise<void> {
    const levels = new PowerLevels(
      await this.#current(head, 'm.room.create'),
      await this.#current(head, 'm.room.power_levels'),
    );
    if (!levels.reaches(userId, 'redact')) throw forbidden('You may not redact events of others');
  }

  async #current(head: RoomHead, type: string): Promise<RoomEvent | undefined> {
    const entry = head.entry(type, '');
    return entry && (await this.#engine.events.get(entry.nid))?.event;
  }

  /** Aliases that are new must exist and point here. Source: `m.room.canonical_alias`, "alt_aliases". */
  async #checkAliases(roomId: string, content: JsonObject): Promise<void> {
    const head = await this.#engine.heads.get(roomId);
    const present = head && (await this.#current(head, 'm.room.canonical_alias'));
    const before = new Set(aliasesIn(present?.content ?? {}));
    for (const alias of aliasesIn(content)) {
      if (before.has(alias)) continue;
      if (!alias.startsWith('#') || !alias.includes(':')) {
        throw new MatrixError(400, 'M_INVALID_PARAM', `${alias} is not a room alias`);
      }
      if ((await this.#aliases.find(alias)) !== roomId) {
        throw new MatrixError(400, 'M_BAD_ALIAS', `${alias} does not point to this room`);
      }
    }
  }
}

function aliasesIn(content: JsonObject): string[] {
  const { alias, alt_aliases: others } = content;
  const list = others === undefined ? [] : others;
  if (!Array.isArray(list)) throw badJson('alt_aliases must be a list');
  return [alias, ...list].filter((one) => typeof one === 'string' && one !== '') as string[];
}
