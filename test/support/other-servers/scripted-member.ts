import assert from 'node:assert/strict';
import { systemClock } from '../../../src/kernel/clock.ts';
import { systemRandomness } from '../../../src/kernel/randomness.ts';
import {
  type BuiltEvent,
  buildEvent,
  type EventDraft,
  getRoomVersion,
  type JsonObject,
  type RoomEvent,
  type RoomVersion,
  receivePdu,
  selectAuthEventKeys,
  stateMapKey,
} from '../../../src/protocol/index.ts';
import {
  buildFromTemplate,
  graphReferences,
} from '../../../src/room-federation/handshakes/templates/event-from-template.ts';
import { enc } from '../users/test-client.ts';
import type { ScriptedServer } from './scripted-server.ts';

const v1 = '/_matrix/federation/v1';

let transactions = 0;

/** The `pdus` of a response to a transaction: the result of each event. */
export type PduResults = Record<string, { readonly error?: string }>;

interface Draft {
  readonly type: string;
  readonly content: JsonObject;
  readonly stateKey?: string;
}

/** A user of a scripted server who has joined a room of a homeserver and can send any event to it. */
export class ScriptedMember {
  readonly server: ScriptedServer;
  readonly roomId: string;
  readonly userId: string;
  readonly version: RoomVersion;
  /** Events received from the homeserver, oldest first. */
  readonly received: RoomEvent[] = [];
  /** Known state events, by `stateMapKey`. */
  readonly state = new Map<string, RoomEvent>();
  /** The event that is the prev event of the next event. */
  latest: RoomEvent;
  /** Server name of the homeserver. */
  readonly #host: string;
  private constructor(joined: {
    server: ScriptedServer;
    host: string;
    roomId: string;
    userId: string;
    join: RoomEvent;
    state: readonly RoomEvent[];
  }) {
    this.server = joined.server;
    this.#host = joined.host;
    this.roomId = joined.roomId;
    this.userId = joined.userId;
    this.version = joined.join.version;
    this.latest = joined.join;
    for (const event of [...joined.state, joined.join]) this.#recordState(event);
    this.server.on(`PUT ${v1}/send/`, ({ body }) => {
      for (const pdu of body['pdus'] as JsonObject[]) this.#receive(pdu);
      return { pdus: {} };
    });
  }

  /** Joins by make_join and send_join. */
  static async join(
    server: ScriptedServer,
    host: string,
    roomId: string,
    userId: string,
  ): Promise<ScriptedMember> {
    const answer = await ScriptedMember.tryToJoin(server, host, roomId, userId);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    const { version } = answer.join;
    const state = (answer.body['state'] as JsonObject[]).map((pdu) => receivePdu(pdu, version).event);
    return new ScriptedMember({ server, host, roomId, userId, join: answer.join, state });
  }

  /** Sends make_join, which must succeed, and send_join. @returns the response to send_join, and the join event */
  static async tryToJoin(server: ScriptedServer, host: string, roomId: string, userId: string) {
    const template = await server.request(
      host,
      'GET',
      `${v1}/make_join/${enc(roomId)}/${enc(userId)}?ver=11&ver=1`,
    );
    assert.equal(template.status, 200, JSON.stringify(template.body));
    const version = getRoomVersion(String(template.body['room_version']))!;
    const { event: join } = buildFromTemplate(
      graphReferences(template.body['event'] as JsonObject, version),
      { roomId, type: 'm.room.member', sender: userId, stateKey: userId, content: { membership: 'join' } },
      version,
      {
        signer: { serverName: server.name, key: server.key },
        clock: systemClock,
        randomness: systemRandomness,
      },
    );
    const path = `/_matrix/federation/v2/send_join/${enc(roomId)}/${enc(join.eventId)}`;
    return { ...(await server.request(host, 'PUT', path, join.pdu)), join };
  }

  /** Builds an event after the latest known one, without sending it. */
  build({ type, content, stateKey }: Draft, change: Partial<EventDraft> = {}): BuiltEvent {
    const sender = change.sender ?? this.userId;
    const auth = selectAuthEventKeys({ type, content, stateKey, sender }, this.version)
      .map((key) => this.state.get(key)?.eventId)
      .filter((id) => id !== undefined);
    return buildEvent(
      {
        type,
        content,
        ...(stateKey !== undefined && { stateKey }),
        sender,
        roomId: this.roomId,
        depth: this.latest.depth + 1,
        originServerTs: Date.now(),
        authEventIds: auth,
        prevEventIds: [this.latest.eventId],
        ...(this.version.eventId === 'origin' && {
          eventId: `$visit${transactions++}:${this.server.name}`,
          referenceHash: () => undefined,
        }),
        ...change,
      },
      this.version,
      { serverName: this.server.name, key: this.server.key },
    );
  }

  /** Builds a text message after the latest event. */
  message(body: string, change: Partial<EventDraft> = {}): BuiltEvent {
    return this.build({ type: 'm.room.message', content: { msgtype: 'm.text', body } }, change);
  }

  /** Makes the event the prev event of the next event. */
  advanceTo({ event }: { readonly event: RoomEvent }): void {
    this.latest = event;
    this.#recordState(event);
  }

  /** Sends PDUs, or other values in their place, in one transaction, which must be answered with 200. */
  async send(...pdus: readonly unknown[]): Promise<PduResults> {
    const { status, body } = await this.transaction({ pdus: pdus as JsonObject[] });
    assert.equal(status, 200, JSON.stringify(body));
    return body['pdus'] as PduResults;
  }

  /** Sends EDUs in one transaction. */
  async sendEdus(...edus: readonly unknown[]): Promise<void> {
    const { status, body } = await this.transaction({ edus: edus as JsonObject[] });
    assert.equal(status, 200, JSON.stringify(body));
  }

  transaction(body: JsonObject) {
    return this.server.request(this.#host, 'PUT', `${v1}/send/visit${transactions++}`, {
      origin: this.server.name,
      origin_server_ts: Date.now(),
      pdus: [],
      ...body,
    });
  }

  /** Sends a text message in a correct transaction. @returns the event id */
  async say(body: string): Promise<string> {
    const built = this.message(body);
    const outcomes = await this.send(built.event.pdu);
    assert.deepEqual(outcomes, { [built.event.eventId]: {} });
    this.advanceTo(built);
    return built.event.eventId;
  }

  #receive(pdu: JsonObject): void {
    if (pdu['room_id'] !== this.roomId) return;
    const { event } = receivePdu(pdu, this.version);
    this.received.push(event);
    if (event.depth > this.latest.depth) this.latest = event;
    this.#recordState(event);
  }

  #recordState(event: RoomEvent): void {
    if (event.stateKey !== undefined) this.state.set(stateMapKey(event.type, event.stateKey), event);
  }
}
