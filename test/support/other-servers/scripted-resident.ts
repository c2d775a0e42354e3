import type { BuiltEvent, JsonObject, RoomEvent } from '../../../src/protocol/index.ts';
import { receivePdu, stateMapKey } from '../../../src/protocol/index.ts';
import { SignedRoom } from '../rooms/signed-room.ts';
import type { ScriptedRequest, ScriptedServer } from './scripted-server.ts';

const v1 = '/_matrix/federation/v1';

let transactions = 0;

/** Events of a room by `stateMapKey`. */
type State = ReadonlyMap<string, RoomEvent>;

/**
 * A scripted server that is in a single room. Like a real server, it serves requests for the state at events that it
 * knows, for single events, and for joins without members. It records the events, EDUs and joins that it receives.
 */
export class ScriptedResident {
  readonly server: ScriptedServer;
  readonly room: SignedRoom;
  /** Events of the homeserver that this server has received as PDUs. */
  readonly received: RoomEvent[] = [];
  readonly edus: JsonObject[] = [];
  /** Joins that this server has accepted. */
  readonly joins: RoomEvent[] = [];
  /** Events that `get_missing_events` returns; by default none. */
  missing: readonly BuiltEvent[] = [];
  /** The responses to `state_ids` and `state` wait until this resolves. */
  stateGate: Promise<void> = Promise.resolve();
  /** Members whose memberships the response to a join contains; by default none. */
  heroes: readonly string[] = [];
  /** Servers that the response to a join names. */
  serversInRoom: readonly string[];
  readonly #host: string;
  /** The state before each known event, by event id. */
  readonly #stateBefore = new Map<string, State>();
  /** Events of the homeserver that this server has accepted, by event id. */
  readonly #accepted = new Map<string, RoomEvent>();
  /** The current state of the room. */
  #currentState = new Map<string, RoomEvent>();

  /** @param host the name of the homeserver under test */
  constructor(server: ScriptedServer, host: string, room = new SignedRoom('11', signerOf(server))) {
    this.server = server;
    this.room = room;
    this.#host = host;
    this.serversInRoom = [server.name];
    let state = new Map<string, RoomEvent>();
    for (const { event } of room.events.values()) {
      this.#stateBefore.set(event.eventId, state);
      state = stateAfter(state, event);
    }
    this.#currentState = state;
    this.#setHandlers();
  }

  /** Makes the responses to requests for states wait. @returns a function that ends the wait */
  holdState(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.stateGate = promise;
    return resolve;
  }

  /** Adds a state event of the room after the newest event, without sending it. */
  setState(type: string, content: JsonObject, stateKey = '', sender = this.room.creator): BuiltEvent {
    return this.#recordState(this.room.setState(type, content, stateKey, sender));
  }

  /** Adds a message after the newest event, without sending it. */
  say(body: string, sender = this.room.creator): BuiltEvent {
    return this.#recordState(this.room.say(body, sender));
  }

  /** Adds a message after these events, without sending it. */
  merge(body: string, ...prev: readonly BuiltEvent[]): BuiltEvent {
    return this.#recordState(this.room.merge(body, ...prev));
  }

  /** Makes an event of the homeserver the newest event of the room, and serves the state before it. */
  accept(event: RoomEvent): void {
    this.#stateBefore.set(event.eventId, this.#currentState);
    this.#append(event);
  }

  #append(event: RoomEvent): void {
    this.#accepted.set(event.eventId, event);
    this.#currentState = stateAfter(this.#currentState, event);
    this.room.accept(event);
  }

  /** Sends events in one transaction. @returns the result of each event (`pdus`), by event id */
  async send(...events: readonly BuiltEvent[]): Promise<JsonObject> {
    return (await this.#transaction({ pdus: events.map(({ event }) => event.pdu) }))['pdus'] as JsonObject;
  }

  async sendEdu(type: string, content: JsonObject): Promise<void> {
    await this.#transaction({ edus: [{ edu_type: type, content }] });
  }

  /** The received requests to an endpoint of the federation API, for instance `state_ids`, in order. */
  requestsTo(endpoint: string): ScriptedRequest[] {
    return this.server.receivedRequests.filter(({ path }) =>
      new RegExp(`^/_matrix/federation/v\\d/${endpoint}/`).test(path),
    );
  }

  /** The endpoint and the event id of each request for a state, in order, for instance `state_ids $a`. */
  requestedStates(): string[] {
    return this.server.receivedRequests
      .filter(({ path }) => path.startsWith(`${v1}/state_ids/`) || path.startsWith(`${v1}/state/`))
      .map(({ path, query }) => `${path.split('/')[4]} ${query.get('event_id')}`);
  }

  #recordState(built: BuiltEvent): BuiltEvent {
    this.#stateBefore.set(built.event.eventId, this.#currentState);
    this.#currentState = stateAfter(this.#currentState, built.event);
    return built;
  }

  #find(eventId: string): RoomEvent | undefined {
    return this.room.events.get(eventId)?.event ?? this.#accepted.get(eventId);
  }

  /** The auth chain of events, without these. */
  #authChain(events: readonly RoomEvent[]): RoomEvent[] {
    const seen = new Set(events.map(({ eventId }) => eventId));
    const chain: RoomEvent[] = [];
    const pending = events.flatMap(({ authEventIds }) => authEventIds);
    for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
      const event = this.#find(id);
      if (!event || seen.has(id)) continue;
      seen.add(id);
      chain.push(event);
      pending.push(...event.authEventIds);
    }
    return chain;
  }

  async #transaction(body: JsonObject): Promise<JsonObject> {
    const path = `${v1}/send/resident${transactions++}`;
    const transaction = { origin: this.server.name, origin_server_ts: Date.now(), pdus: [], ...body };
    const { status, body: answer } = await this.server.request(this.#host, 'PUT', path, transaction);
    if (status !== 200) throw new Error(`the transaction was refused: ${JSON.stringify(answer)}`);
    return answer;
  }

  #setHandlers(): void {
    const { server, room } = this;
    const notFound = [404, { errcode: 'M_NOT_FOUND', error: 'This server does not have the event' }] as const;
    server.on(`GET ${v1}/make_join/`, ({ path }) => room.membershipTemplate(path.split('/').at(-1)!, 'join'));
    server.on('PUT /_matrix/federation/v2/send_join/', ({ body }) => {
      const { event } = receivePdu(body, room.version);
      const stateBefore = [...this.#currentState.values()];
      const state = stateBefore.filter(
        ({ type, stateKey }) => type !== 'm.room.member' || this.heroes.includes(stateKey!),
      );
      const chain = this.#authChain([event, ...state]);
      this.#append(event);
      this.joins.push(event);
      return {
        state: state.map(({ pdu }) => pdu),
        auth_chain: chain.map(({ pdu }) => pdu),
        members_omitted: true,
        servers_in_room: [...this.serversInRoom],
        event: body,
      };
    });
    for (const endpoint of ['state_ids', 'state']) {
      server.on(`GET ${v1}/${endpoint}/`, async ({ query }) => {
        const state = this.#stateBefore.get(query.get('event_id') ?? '');
        if (!state) return notFound;
        await this.stateGate;
        const events = [...state.values()];
        const ids = events.map(({ eventId }) => eventId);
        const pdus = events.map(({ pdu }) => pdu);
        return endpoint === 'state' ? { pdus, auth_chain: pdus } : { pdu_ids: ids, auth_chain_ids: ids };
      });
    }
    server.on(`GET ${v1}/event/`, ({ path }) => {
      const event = this.#find(path.slice(`${v1}/event/`.length));
      return event ? { origin: server.name, origin_server_ts: 1, pdus: [event.pdu] } : notFound;
    });
    server.on(`POST ${v1}/get_missing_events/`, () => ({
      events: this.missing.map(({ event }) => event.pdu),
    }));
    server.on(`PUT ${v1}/send/`, ({ body }) => {
      for (const pdu of body['pdus'] as JsonObject[]) {
        const { event } = receivePdu(pdu, room.version);
        if (event.roomId === room.roomId) this.received.push(event);
      }
      this.edus.push(...((body['edus'] ?? []) as JsonObject[]));
      return { pdus: {} };
    });
  }
}

function stateAfter(state: State, event: RoomEvent): Map<string, RoomEvent> {
  const changed = new Map(state);
  if (event.stateKey !== undefined) changed.set(stateMapKey(event.type, event.stateKey), event);
  return changed;
}

const signerOf = ({ name, key }: ScriptedServer) => ({ serverName: name, key });
