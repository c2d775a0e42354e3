import type { JsonValue, ServerKeyLookup } from '../protocol/index.ts';
import type { PolicyServerClient, RemoteRequestOptions } from '../room-engine/index.ts';
import type { MembershipPeers } from './handshakes/peers.ts';

/** A gap in the history, as in `POST /get_missing_events/{roomId}`. */
export interface GapRequest {
  /** Ids of the newest events before the gap: the requesting server has these events. */
  readonly earliest: readonly string[];
  /** Events whose `prev_events` are missing. */
  readonly latest: readonly string[];
  readonly limit: number;
  readonly minDepth: number;
}

/** The state before an event. */
export interface RemoteState<T> {
  readonly state: readonly T[];
  /** The auth chain of the state. */
  readonly authChain: readonly T[];
}

/** The event of a room that is closest to a timestamp. */
export interface TimestampedEvent {
  readonly eventId: string;
  /** Milliseconds since the epoch. */
  readonly originServerTs: number;
}

/**
 * Requests to remote servers for events of rooms. Responses have the right shape and a bounded size; nothing
 * else about them is verified: events are unchecked JSON, with numbers as they are written. Every method
 * throws when the server is unreachable, refuses, or responds with invalid data.
 */
export interface RemoteEvents {
  event(server: string, eventId: string, request?: RemoteRequestOptions): Promise<JsonValue>;
  missingEvents(
    server: string,
    roomId: string,
    gap: GapRequest,
    request?: RemoteRequestOptions,
  ): Promise<readonly JsonValue[]>;
  stateIds(
    server: string,
    roomId: string,
    eventId: string,
    request?: RemoteRequestOptions,
  ): Promise<RemoteState<string>>;
  state(
    server: string,
    roomId: string,
    eventId: string,
    request?: RemoteRequestOptions,
  ): Promise<RemoteState<JsonValue>>;
  eventAuth(
    server: string,
    roomId: string,
    eventId: string,
    request?: RemoteRequestOptions,
  ): Promise<readonly JsonValue[]>;
  /** Returns these events and the events before them, usually newest first. */
  backfill(
    server: string,
    roomId: string,
    eventIds: readonly string[],
    limit: number,
    request?: RemoteRequestOptions,
  ): Promise<readonly JsonValue[]>;
  timestampToEvent(
    server: string,
    roomId: string,
    ts: number,
    direction: 'forward' | 'backward',
    request?: RemoteRequestOptions,
  ): Promise<TimestampedEvent>;
}

/** A key that signatures of events refer to, and the validity that they need. */
export interface WantedEventKey {
  readonly serverName: string;
  readonly keyId: string;
  /** The key should be valid until this time, in milliseconds since the epoch. */
  readonly validUntil: number;
}

/** Looks up the signing keys of servers, and fetches unknown keys. */
export interface EventKeys {
  findAll(wants: readonly WantedEventKey[]): Promise<ServerKeyLookup>;
}

/** Which servers are in backoff because they were unreachable. */
export interface ServerHealth {
  /** When the backoff ends, in milliseconds since the epoch; undefined without a backoff. */
  backoffUntil(serverName: string): Promise<number | undefined>;
  /** Calls `listener` with the name of each server that is reachable again. */
  onReturn(listener: (serverName: string) => void): void;
}

/** Access to remote servers for rooms. */
export interface OtherServers {
  readonly events: RemoteEvents;
  readonly keys: EventKeys;
  readonly health: ServerHealth;
  /** Absent when policy servers receive no requests, and their signatures are not required. */
  readonly policies?: PolicyServerClient;
  /** Absent when an invite can be ended only by its sender. */
  readonly memberships?: Pick<MembershipPeers, 'fetchEventTemplate'>;
}

const noNetwork = async (): Promise<never> => {
  throw new Error('this server has no access to remote servers');
};

/** Stands for remote servers where there is no network: no request can be sent, and no key is known. */
export const noOtherServers: OtherServers = {
  events: {
    event: noNetwork,
    missingEvents: noNetwork,
    stateIds: noNetwork,
    state: noNetwork,
    eventAuth: noNetwork,
    backfill: noNetwork,
    timestampToEvent: noNetwork,
  },
  keys: { findAll: async () => () => undefined },
  health: { backoffUntil: async () => Number.MAX_SAFE_INTEGER, onReturn: () => undefined },
};
