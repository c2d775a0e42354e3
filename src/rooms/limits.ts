/** How often something may be done; supplied at composition. */
export interface ActionLimit {
  /** Counts an action of that weight. @throws MatrixError M_LIMIT_EXCEEDED; the action is then not counted */
  take(key: string, cost?: number): void;
  /** Refuses like `take`, and counts nothing. */
  check(key: string, cost?: number): void;
}

/** The limits on what is done in rooms, named after their options. */
export interface RoomLimits {
  readonly rc_message: ActionLimit;
  /** Absent: `rc_message` holds for redactions of others' messages, too. */
  readonly rc_admin_redaction: ActionLimit | undefined;
  readonly rc_joins: ActionLimit;
  /** Joins of rooms that this server is not in. */
  readonly rc_remote_joins: ActionLimit;
  readonly rc_joins_per_room: ActionLimit;
  readonly rc_invites: {
    readonly per_room: ActionLimit;
    readonly per_user: ActionLimit;
    readonly per_issuer: ActionLimit;
  };
  readonly rc_room_creation: ActionLimit;
  /** What administrators have decided for a user: no limits at all, or another one for messages. */
  readonly overrideOf?: (userId: string) => 'none' | ActionLimit | undefined;
}

/** Who asks for something to be done. What the server does of its own accord, nobody asks for. */
export interface RequestingUser {
  readonly userId: string;
  readonly isGuest?: boolean;
  /** They may leave rooms and redact what they sent, and nothing else here. */
  readonly isSuspended?: boolean;
  /** Application services are not limited. */
  readonly appservice?: string | undefined;
}

/** Holds requests against the limits. Every method throws MatrixError M_LIMIT_EXCEEDED. */
export class Throttle {
  readonly #limits: RoomLimits | undefined;

  /** @param limits absent: none */
  constructor(limits: RoomLimits | undefined) {
    this.#limits = limits;
  }

  /** A message or another event that is sent. */
  message(requester: RequestingUser): void {
    this.#forMessages(requester)?.take(requester.userId);
  }

  /** A redaction of somebody else's event. */
  redactionOfOthers(requester: RequestingUser): void {
    const limits = this.#for(requester);
    (limits?.rc_admin_redaction ?? this.#forMessages(requester))?.take(requester.userId);
  }

  /** A join of a room that this server is in. */
  join(requester: RequestingUser | undefined, roomId: string): void {
    const limits = this.#for(requester);
    if (!limits || !requester) return;
    limits.rc_joins_per_room.check(roomId);
    limits.rc_joins.take(requester.userId);
    limits.rc_joins_per_room.take(roomId);
  }

  /** A join of a room that this server is not in. */
  remoteJoin(requester: RequestingUser | undefined): void {
    if (requester) this.#for(requester)?.rc_remote_joins.take(requester.userId);
  }

  /** A join of a user of another server, with the help of this one. */
  remoteUserJoin(roomId: string): void {
    this.#limits?.rc_joins_per_room.take(roomId);
  }

  /** An invite of a local user by another server. */
  remoteInvite(roomId: string, userId: string): void {
    if (!this.#limits) return;
    const { per_room, per_user } = this.#limits.rc_invites;
    per_room.check(roomId);
    per_user.take(userId);
    per_room.take(roomId);
  }

  invite(requester: RequestingUser | undefined, roomId: string, userId: string): void {
    const limits = this.#for(requester);
    if (!limits || !requester) return;
    const { per_room, per_user, per_issuer } = limits.rc_invites;
    per_room.check(roomId);
    per_user.check(userId);
    per_issuer.take(requester.userId);
    per_room.take(roomId);
    per_user.take(userId);
  }

  /** A new room. @param invites how many are invited with it; together they must fit the limit of one room */
  creation(requester: RequestingUser | undefined, invites: number): void {
    const limits = this.#for(requester);
    if (!limits || !requester) return;
    if (invites > 0) limits.rc_invites.per_room.check('', invites);
    limits.rc_room_creation.take(requester.userId);
  }

  #forMessages(requester: RequestingUser): ActionLimit | undefined {
    const limits = this.#for(requester);
    const other = limits?.overrideOf?.(requester.userId);
    return other === undefined || other === 'none' ? limits?.rc_message : other;
  }

  #for(requester: RequestingUser | undefined): RoomLimits | undefined {
    if (requester === undefined || requester.appservice !== undefined) return undefined;
    return this.#limits?.overrideOf?.(requester.userId) === 'none' ? undefined : this.#limits;
  }
}
