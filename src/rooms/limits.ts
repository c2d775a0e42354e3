/** A rate limit; supplied at composition. */
export interface ActionLimit {
  /**
   * Counts an action of weight `cost` (by default 1).
   * @param key what the actions are counted for, for instance a user id or a room id
   * @throws MatrixError M_LIMIT_EXCEEDED when the limit is reached; the action is then not counted
   */
  take(key: string, cost?: number): void;
  /** Throws as `take` does, and counts nothing. */
  check(key: string, cost?: number): void;
}

/** Limits of invites by the room, the invited user and the user who invites. */
export interface InviteLimits {
  readonly per_room: ActionLimit;
  readonly per_user: ActionLimit;
  readonly per_issuer: ActionLimit;
}

/** Rate limits of actions in rooms, named after their options. */
export interface RoomLimits {
  readonly rc_message: ActionLimit;
  /** Absent: `rc_message` limits redactions of other users' events as well. */
  readonly rc_admin_redaction: ActionLimit | undefined;
  readonly rc_joins: ActionLimit;
  /** Joins of rooms that this server is not in. */
  readonly rc_remote_joins: ActionLimit;
  readonly rc_joins_per_room: ActionLimit;
  readonly rc_invites: InviteLimits;
  readonly rc_room_creation: ActionLimit;
  /**
   * Returns the limits of a user's invites; `undefined`: `rc_invites` applies. Absent: `rc_invites` applies
   * to all users.
   */
  readonly inviteLimitsOf?: ((userId: string) => Promise<InviteLimits | undefined>) | undefined;
  /**
   * Returns what administrators have set for a user: `none` for no limits at all, or another limit for messages;
   * `undefined`: nothing is set.
   */
  readonly overrideOf?: (userId: string) => 'none' | ActionLimit | undefined;
}

/** The user who makes a request. Actions of the server itself have no requesting user. */
export interface RequestingUser {
  readonly userId: string;
  readonly isGuest?: boolean;
  /** Suspended users may only leave rooms and redact their own events. */
  readonly isSuspended?: boolean;
  /** Events and invites of shadow-banned users seem to succeed and are not sent. */
  readonly isShadowBanned?: boolean;
  /** Id of the application service that makes the request. */
  readonly appservice?: string | undefined;
  /** Whether rate limits do not apply. */
  readonly isUnlimited?: boolean;
  /** Whether a job that an administrator has started makes the request; such requests are not limited. */
  readonly isServerTask?: boolean;
}

/** Applies the rate limits. Each method that counts an action throws MatrixError M_LIMIT_EXCEEDED beyond its limit. */
export class Throttle {
  readonly #limits: RoomLimits | undefined;

  /** @param limits absent: nothing is limited */
  constructor(limits: RoomLimits | undefined) {
    this.#limits = limits;
  }

  /** Counts a message or state event, a knock, or a change of the user's own profile in a room. */
  message(requester: RequestingUser): void {
    this.#messageLimitFor(requester)?.take(requester.userId);
  }

  /** Counts a redaction of another user's event. */
  redactionOfOthers(requester: RequestingUser): void {
    const limits = this.#limitsFor(requester);
    (limits?.rc_admin_redaction ?? this.#messageLimitFor(requester))?.take(requester.userId);
  }

  /** Counts a join of a room that this server is in. */
  join(requester: RequestingUser | undefined, roomId: string): void {
    const limits = this.#limitsFor(requester);
    if (!limits || !requester) return;
    limits.rc_joins_per_room.check(roomId);
    limits.rc_joins.take(requester.userId);
    limits.rc_joins_per_room.take(roomId);
  }

  /** Counts a join of a room that this server is not in. */
  remoteJoin(requester: RequestingUser | undefined): void {
    if (requester) this.#limitsFor(requester)?.rc_remote_joins.take(requester.userId);
  }

  /** Counts a join of a remote user through this server. */
  remoteUserJoin(roomId: string): void {
    this.#limits?.rc_joins_per_room.take(roomId);
  }

  /** Counts an invite of a local user by a remote user. */
  remoteInvite(roomId: string, userId: string): void {
    if (!this.#limits) return;
    const { per_room, per_user } = this.#limits.rc_invites;
    per_room.check(roomId);
    per_user.take(userId);
    per_room.take(roomId);
  }

  /**
   * Returns the limits of a user's invites, for the parameter `userLimits` of `invite`. Returns `undefined` without a
   * promise when all users have the same limits.
   */
  inviteLimitsOf(requester: RequestingUser | undefined): Promise<InviteLimits | undefined> | undefined {
    const limits = this.#limitsFor(requester);
    return requester && limits?.inviteLimitsOf?.(requester.userId);
  }

  /** Counts an invite. @param userLimits limits of the user who invites, by default `rc_invites` */
  invite(
    requester: RequestingUser | undefined,
    roomId: string,
    userId: string,
    userLimits?: InviteLimits,
  ): void {
    const limits = this.#limitsFor(requester);
    if (!limits || !requester) return;
    const { per_room, per_user, per_issuer } = userLimits ?? limits.rc_invites;
    per_room.check(roomId);
    per_user.check(userId);
    per_issuer.take(requester.userId);
    per_room.take(roomId);
    per_user.take(userId);
  }

  /** Counts a new room. @param invites number of invited users, who together must be within the per-room limit */
  creation(requester: RequestingUser | undefined, invites: number): void {
    const limits = this.#limitsFor(requester);
    if (!limits || !requester) return;
    if (invites > 0) limits.rc_invites.per_room.check('', invites);
    limits.rc_room_creation.take(requester.userId);
  }

  /** Throws when a further message of the user would be refused; counts nothing. */
  checkMessage(requester: RequestingUser): void {
    this.#messageLimitFor(requester)?.check(requester.userId);
  }

  /** Throws when a further new room of the user would be refused; counts nothing. */
  checkCreation(requester: RequestingUser): void {
    this.#limitsFor(requester)?.rc_room_creation.check(requester.userId);
  }

  #messageLimitFor(requester: RequestingUser): ActionLimit | undefined {
    const limits = this.#limitsFor(requester);
    const override = limits?.overrideOf?.(requester.userId);
    return override === undefined || override === 'none' ? limits?.rc_message : override;
  }

  #limitsFor(requester: RequestingUser | undefined): RoomLimits | undefined {
    if (!requester || requester.isUnlimited || requester.isServerTask) return undefined;
    return this.#limits?.overrideOf?.(requester.userId) === 'none' ? undefined : this.#limits;
  }
}
