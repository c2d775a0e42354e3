import type { OtherServers, RemoteEvents } from '../../../src/room-federation/index.ts';
import type { RemoteRoom } from './remote-room.ts';

type Method = keyof RemoteEvents;

/** Methods that replace a server's true responses; they may throw. */
export type Script = Partial<{ [M in Method]: RemoteEvents[M] }>;

/** A request that a server received. */
export interface RecordedRequest {
  readonly method: Method;
  readonly server: string;
  readonly args: readonly unknown[];
}

/**
 * Remote servers that answer requests about one room truthfully, except where a script replaces a response.
 */
export class FakeRemoteServers implements OtherServers {
  readonly receivedRequests: RecordedRequest[] = [];
  /** The scripts by server name. */
  readonly scripts = new Map<string, Script>();
  /** Servers that cannot be reached. */
  readonly down = new Set<string>();
  readonly events: RemoteEvents;
  readonly keys: OtherServers['keys'];
  /** Servers in backoff. */
  readonly blocked = new Set<string>();
  readonly health: OtherServers['health'] = {
    backoffUntil: async (server) => (this.blocked.has(server) ? Number.MAX_SAFE_INTEGER : undefined),
    onReturn: (listener) => void this.#listeners.push(listener),
  };
  readonly #listeners: ((server: string) => void)[] = [];

  constructor(room: RemoteRoom) {
    this.keys = {
      findAll: async () => (server, keyId) => {
        const key = room.keys.get(server);
        if (key?.keyId !== keyId) return undefined;
        return { key: key.publicKey, validUntilTs: Number.MAX_SAFE_INTEGER };
      },
    };
    const events = truthfulEvents(room);
    const answerTo =
      <M extends Method>(method: M) =>
      async (...args: unknown[]) => {
        const server = String(args[0]);
        this.receivedRequests.push({ method, server, args });
        if (this.down.has(server)) throw new Error(`${server} is down`);
        const answer = this.scripts.get(server)?.[method] ?? events[method];
        return (answer as (...args: unknown[]) => Promise<never>)(...args);
      };
    this.events = {
      event: answerTo('event'),
      missingEvents: answerTo('missingEvents'),
      stateIds: answerTo('stateIds'),
      state: answerTo('state'),
      eventAuth: answerTo('eventAuth'),
      backfill: answerTo('backfill'),
      timestampToEvent: answerTo('timestampToEvent'),
    };
  }

  /** Ends the backoff of a server and notifies the listeners. */
  recover(server: string): void {
    this.blocked.delete(server);
    for (const listener of this.#listeners) listener(server);
  }

  /** Counts the calls of a method. @param server counts only the calls to this server */
  count(method: Method, server?: string): number {
    return this.receivedRequests.filter(
      (request) => request.method === method && (!server || request.server === server),
    ).length;
  }
}

function truthfulEvents(room: RemoteRoom): RemoteEvents {
  const stateOf = (eventId: string) => [...room.get(eventId).stateBefore.values()];
  return {
    event: async (_server, eventId) => room.pdu(eventId),
    missingEvents: async (_server, _roomId, { earliest, latest, limit }) =>
      room.pdus(room.before(latest, limit, new Set(earliest)).reverse()),
    stateIds: async (_server, _roomId, eventId) => ({
      state: stateOf(eventId),
      authChain: [...room.authChain(stateOf(eventId))],
    }),
    state: async (_server, _roomId, eventId) => ({
      state: room.pdus(stateOf(eventId)),
      authChain: room.pdus(room.authChain(stateOf(eventId))),
    }),
    eventAuth: async (_server, _roomId, eventId) => room.pdus(room.authChain([eventId])),
    backfill: async (_server, _roomId, eventIds, limit) =>
      room.pdus([...eventIds, ...room.before(eventIds, limit - eventIds.length)]),
    async timestampToEvent(_server, _roomId, ts, direction) {
      const events = [...room.events.values()].map(({ event }) => event);
      const isFit = (time: number) => (direction === 'forward' ? time >= ts : time <= ts);
      const [closest] = events
        .filter(({ originServerTs }) => isFit(originServerTs))
        .sort((a, b) => Math.abs(a.originServerTs - ts) - Math.abs(b.originServerTs - ts));
      if (!closest) throw new Error('the room has no such event');
      return { eventId: closest.eventId, originServerTs: closest.originServerTs };
    },
  };
}
