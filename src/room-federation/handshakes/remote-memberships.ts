import type { KeyedMutex } from '../../kernel/keyed-mutex.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import { type JsonObject, MatrixError, notFound } from '../../protocol/index.ts';
import type {
  EventToSend,
  Placement,
  PrejoinStateKeys,
  RoomHead,
  StoredEvent,
  UserRoom,
} from '../../room-engine/index.ts';
import { isResidentForUser, type RoomWriter } from '../../room-engine/index.ts';
import { type CandidateDeps, CandidateServers } from './candidate-servers.ts';
import type { HandshakeDeps } from './handshake.ts';
import { RemoteJoin } from './joining/remote-join.ts';
import type { ComplexityLimit } from './joining/room-complexity.ts';
import type { StateCompletion } from './joining/state-completion.ts';
import type { PendingLeaves } from './leaving/pending-leaves.ts';
import { RemoteLeave } from './leaving/remote-leave.ts';
import { RemoteInvite } from './remote-invite.ts';
import { RemoteKnock } from './remote-knock.ts';

export interface RemoteMembershipsDeps extends HandshakeDeps, CandidateDeps {
  readonly engine: RoomWriter;
  readonly placement: Placement;
  /** The keys of the state events that describe a room to an invited user. */
  readonly prejoinStateKeys: PrejoinStateKeys;
  readonly complexity: ComplexityLimit;
  readonly completion: Pick<StateCompletion, 'begin'>;
  readonly pendingLeaves: Pick<PendingLeaves, 'begin'>;
  /** Runs the joins and knocks of one room one at a time. */
  readonly roomMutex: KeyedMutex;
}

/** A user, a room, and the servers that receive the requests. */
export interface RemoteMembershipRequest {
  readonly userId: string;
  readonly roomId: string;
  /** Servers from the client's `via`, or from the room alias. */
  readonly via?: readonly string[] | undefined;
  /** If present, only these servers receive requests, even if this server is in the room already. */
  readonly only?: readonly string[] | undefined;
  /** The content of the membership event. */
  readonly content: JsonObject;
}

/** Memberships of local users in rooms that this server is not in, and invites of users of remote servers. */
export class RemoteMemberships {
  readonly #deps: RemoteMembershipsDeps;
  readonly #candidates: CandidateServers;
  readonly #join: RemoteJoin;
  readonly #leave: RemoteLeave;
  readonly #knock: RemoteKnock;
  readonly #invite: RemoteInvite;
  /** Deduplicates simultaneous joins of the same user and room. */
  readonly #joining = new LoadOnce<string, StoredEvent | undefined>();

  constructor(deps: RemoteMembershipsDeps) {
    this.#deps = deps;
    this.#candidates = new CandidateServers(deps);
    this.#join = new RemoteJoin(deps);
    this.#leave = new RemoteLeave(deps);
    this.#knock = new RemoteKnock(deps);
    this.#invite = new RemoteInvite(deps);
  }

  /**
   * Joins through a resident server. Simultaneous calls for the same user and room share one handshake.
   * @returns `undefined` when this server has joined the room in the meantime, so that no resident server is needed
   * @throws MatrixError M_NOT_FOUND when no server is known, the most informative error of all servers, the errors of
   * the checks of modules, M_RESOURCE_LIMIT_EXCEEDED
   */
  join(request: RemoteMembershipRequest): Promise<StoredEvent | undefined> {
    const { userId, roomId } = request;
    const key = JSON.stringify([userId, roomId]);
    const { roomMutex } = this.#deps;
    return this.#joining.run(key, () => roomMutex.run(roomId, () => this.#joinNow(request)));
  }

  async #joinNow(request: RemoteMembershipRequest): Promise<StoredEvent | undefined> {
    const { engine, serverName, complexity, peers } = this.#deps;
    const { userId, roomId, via, only } = request;
    if (!only && (await isResidentForUser(engine, userId, roomId, serverName))) return undefined;
    const content = await this.#checkedContent(request);
    const servers = only ?? (await this.#candidates.toJoin(userId, roomId, via));
    if (servers.length === 0) throw notFound('No server in the room is known');
    const hasLimit = !only && (await complexity.appliesTo(userId));
    const isMeasured = hasLimit && (await complexity.checkBeforeJoin(peers, servers, roomId));
    // Members are omitted only where the complexity of the room need not be calculated after the join.
    const omitMembers = !hasLimit || isMeasured;
    const joined = await this.#join.join({ ...request, content, servers, omitMembers });
    const partial = (await engine.heads.get(roomId))?.partial;
    if (partial) this.#deps.completion.begin(roomId, partial.joinEventId);
    if (hasLimit) await this.#leaveIfTooComplex(userId, roomId);
    return joined;
  }

  async #leaveIfTooComplex(userId: string, roomId: string): Promise<void> {
    const { engine, complexity } = this.#deps;
    const head = await engine.heads.get(roomId);
    try {
      if (head) complexity.checkAfterJoin(head);
    } catch (error) {
      const leave = { type: 'm.room.member', stateKey: userId, sender: userId };
      await engine.timeline.append(roomId, { ...leave, content: { membership: 'leave' } });
      throw error;
    }
  }

  /** Knocks through a resident server. Returns and throws as `join` does, except M_RESOURCE_LIMIT_EXCEEDED. */
  knock(request: RemoteMembershipRequest): Promise<StoredEvent | undefined> {
    const { userId, roomId, via } = request;
    const knock = async () => {
      const content = await this.#checkedContent(request);
      const servers = await this.#candidates.toJoin(userId, roomId, via);
      return this.#knock.knock({ ...request, content, servers });
    };
    return this.#deps.roomMutex.run(roomId, () => this.#whileNotInRoom(userId, roomId, knock));
  }

  /**
   * Returns the content of the join or knock, which checks may have changed.
   * @throws MatrixError of a check that rejects it
   */
  async #checkedContent({ userId, roomId, content }: RemoteMembershipRequest): Promise<JsonObject> {
    const { checks } = this.#deps.engine;
    if (checks.isEmpty) return content;
    const draft = { type: 'm.room.member', stateKey: userId, sender: userId, content };
    return (await checks.pass(draft, { roomId })).content;
  }

  /**
   * Rejects an invite or retracts a knock. Succeeds even if no remote server accepts the leave.
   * @param present the invite or knock
   * @returns as `join`
   */
  leave(userId: string, present: UserRoom, content: JsonObject): Promise<StoredEvent | undefined> {
    const { engine } = this.#deps;
    const { roomId, eventNid } = present;
    return this.#whileNotInRoom(userId, roomId, async () => {
      const stored = await engine.events.get(eventNid);
      if (!stored) throw new Error('the membership event is not stored');
      const recipients = await this.#candidates.leaveRecipients(userId, present);
      return this.#leave.leave({ present: stored, userId, ...recipients, content });
    });
  }

  /**
   * Runs `work` unless this server is in the room.
   * @returns `undefined` when this server is in the room, or when it has joined the room by the time that `work` fails
   */
  async #whileNotInRoom(
    userId: string,
    roomId: string,
    work: () => Promise<StoredEvent>,
  ): Promise<StoredEvent | undefined> {
    const { engine, serverName } = this.#deps;
    const isInRoom = () => isResidentForUser(engine, userId, roomId, serverName);
    if (await isInRoom()) return undefined;
    try {
      return await work();
    } catch (error) {
      if (error instanceof MatrixError && (await isInRoom())) return undefined;
      throw error;
    }
  }

  /** Invites a user of a remote server. @throws MatrixError */
  invite(head: RoomHead, draft: EventToSend & { readonly stateKey: string }): Promise<StoredEvent> {
    return this.#invite.invite(head, draft);
  }
}
