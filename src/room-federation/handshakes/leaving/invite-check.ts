import { RemoteError } from '../../../federation-client/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Database } from '../../../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../../../kernel/jobs/index.ts';
import { getRoomVersion, type Pdu, parseJsonObject, roomEventOf } from '../../../protocol/index.ts';
import type { RoomWriter, VerifiedEvent } from '../../../room-engine/index.ts';
import type { MembershipPeers } from '../peers.ts';

/** An invite of a local user to a room that this server is not in. */
export interface InviteToCheck {
  readonly roomId: string;
  readonly userId: string;
  /** The nid of the invite. */
  readonly invite: number;
  /** The servers that sent the invite. */
  readonly servers: readonly string[];
}

/** An invite to check, and the event that ends it. Stored as the payload of a job. */
type InviteCheck = {
  readonly roomId: string;
  readonly userId: string;
  /** The nid of the invite. */
  readonly invite: number;
  readonly servers: readonly string[];
  /** The leave or ban that is stored once a server confirms that the invite is over. */
  readonly end: {
    readonly eventId: string;
    /** The room version of the event. */
    readonly version: string;
    /** The PDU as canonical JSON. */
    readonly json: string;
  };
  /** Number of attempts so far: after each, the servers still had the invite, or were unreachable. */
  readonly attempts: number;
};

export interface InviteChecksDeps {
  readonly peers: Pick<MembershipPeers, 'fetchEventTemplate'>;
  readonly engine: Pick<RoomWriter, 'heads' | 'placement' | 'userRooms'>;
  readonly database: Database;
  readonly jobs: Pick<Jobs, 'register' | 'schedule'>;
  readonly clock: Clock;
  readonly serverName: string;
}

const kind = 'rooms/check-invite';

/**
 * Milliseconds before each attempt: the inviting server may receive the end of the invite after this server, or
 * be unreachable.
 */
const delays = [0, 2_000, 15_000, 120_000, 900_000, 3_600_000];

/** Timeout of one request in milliseconds. */
const requestTimeout = 10_000;

/** Maximum number of invites that are checked at the same time: slow servers must not delay other jobs. */
const maxParallel = 2;

/**
 * Checks whether a room still has an invite, with requests to the servers that sent it. From outside of a room, this
 * server cannot check whether a user may kick or ban. Survives restarts; at most one check of each invite is pending.
 */
export class InviteChecks {
  readonly #deps: InviteChecksDeps;

  constructor(deps: InviteChecksDeps) {
    this.#deps = deps;
    deps.jobs.register<InviteCheck>(kind, {
      run: (attempt) => this.#attempt(attempt),
      parallel: maxParallel,
    });
  }

  /**
   * Queues a check on disk. The check stores the leave or ban (the second parameter) once a server that sent the invite
   * answers that the invite cannot be rejected any more. Does nothing while a check of the same invite is pending.
   */
  begin({ roomId, userId, invite, servers }: InviteToCheck, { event, json }: VerifiedEvent): Promise<void> {
    const end = { eventId: event.eventId, version: event.version.id, json };
    return this.#schedule({ roomId, userId, invite, servers, end, attempts: 0 });
  }

  /** Schedules the next attempt. */
  #schedule(check: InviteCheck, replace = false): Promise<void> {
    const { database, jobs, clock } = this.#deps;
    const runAt = clock.now() + (delays[check.attempts] ?? 0);
    const request = { kind, key: keyOf(check), payload: check, runAt, replace };
    return database.transaction((writer) => jobs.schedule(writer, request));
  }

  async #attempt({ payload: check, signal }: JobAttempt<InviteCheck>): Promise<void> {
    if (!(await this.#isCurrent(check))) return;
    for (const server of check.servers) {
      const isRefused = await this.#isRefused(server, check, signal);
      signal.throwIfAborted();
      if (!isRefused) continue;
      if (await this.#isCurrent(check)) await this.#storeEnd(check);
      return;
    }
    const attempts = check.attempts + 1;
    if (attempts < delays.length) await this.#schedule({ ...check, attempts }, true);
  }

  /** Whether the user still has the invite, to a room that this server has not entered meanwhile. */
  async #isCurrent({ roomId, userId, invite }: InviteCheck): Promise<boolean> {
    const { engine, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (head?.servers.has(serverName)) return false;
    return (await engine.userRooms.of(userId)).get(roomId)?.eventNid === invite;
  }

  /** Whether the server refuses to prepare the rejection of the invite, because the room has no such invite. */
  async #isRefused(server: string, { roomId, userId }: InviteCheck, signal: AbortSignal): Promise<boolean> {
    const request = { timeout: requestTimeout, signal };
    try {
      await this.#deps.peers.fetchEventTemplate(server, 'leave', { roomId, userId }, [], request);
      return false;
    } catch (error) {
      return error instanceof RemoteError && error.status === 403;
    }
  }

  async #storeEnd({ roomId, end }: InviteCheck): Promise<void> {
    const version = getRoomVersion(end.version);
    if (!version) return;
    const numbers = version.strictCanonicalJson ? 'values' : 'as written';
    const event = roomEventOf(parseJsonObject(end.json, { numbers }) as Pdu, version, end.eventId);
    await this.#deps.engine.placement.addOutOfBand(
      { roomId, version },
      { event, json: end.json },
      { state: [] },
    );
  }
}

const keyOf = ({ roomId, userId, invite }: InviteCheck) => JSON.stringify([roomId, userId, invite]);
