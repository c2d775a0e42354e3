import type { JsonValue, ServerKeyLookup } from '../protocol/index.ts';
import type { PolicyServerClient, RemoteRequestOptions } from '../room-engine/index.ts';

/** What lies between events that are known and later ones. */
export interface GapRequest {
  /** Events that are known: what comes before them is not wanted. */
  readonly earliest: readonly string[];
  /** Events whose `prev_events` are missing. */
  readonly latest: readonly string[];
  readonly limit: number;
  readonly minDepth: number;
}

/** The state before an event. */
export interface RemoteState<T> {
  readonly state: readonly T[];
  /** The events that authorise it, theirs too. */
  readonly authChain: readonly T[];
}

/** The event of a room that is closest to a time. */
export interface TimestampedEvent {
  readonly eventId: string;
  /** Milliseconds since the epoch. */
  readonly originServerTs: number;
}

/**
 * What other servers are asked about the events of rooms. Answers have the right shape and a bounded size, nothing
 * else is true of them: events come as JSON with numbers as they are written, and nobody has checked them. Every
 * method throws when the server can not be asked, refuses, or answers what makes no sense.
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
  /** The events and those before them, newest first as a rule. */
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

/** A key that signatures of events name. */
export interface EventKeyWant {
  readonly serverName: string;
  readonly keyId: string;
  /** Until when it should be valid at least, in milliseconds since the epoch. */
  readonly validUntil: number;
}

/** The keys of servers, fetched where they are not known. */
export interface EventKeys {
  findAll(wants: readonly EventKeyWant[]): Promise<ServerKeyLookup>;
}

/** Which servers are left alone because they could not be reached. */
export interface ServerHealth {
  /** Milliseconds since the epoch; `undefined` when the server may be asked. */
  backoffUntil(serverName: string): Promise<number | undefined>;
  /** Calls `listener` with the name of each server that is found to be back. */
  onReturn(listener: (serverName: string) => void): void;
}

/** The way to other servers, as rooms need it. */
export interface OtherServers {
  readonly events: RemoteEvents;
  readonly keys: EventKeys;
  readonly health: ServerHealth;
  /** Absent: policy servers are not asked, and nothing is required of them. */
  readonly policies?: PolicyServerClient;
}
