import { canonicalAddress } from '../identity-servers/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { AnyWriter, Database, Writer } from '../kernel/database/index.ts';
import { afterCommit, writerFor } from '../kernel/database/index.ts';
import { MatrixError } from '../protocol/index.ts';
import { mailAppId, type Pusher, type PusherSettings } from './pusher.ts';
import { deletePushers, findPushers, readPushers, readUsersWithPushers, writePusher } from './store.ts';
import type { PusherTables } from './tables.ts';

/** Finds the accounts of mail addresses; declared here, supplied at composition. */
export interface AddressOwners {
  /** Returns the user id of the account that has a mail address, whatever its letter case. */
  findUser(medium: 'email', address: string): Promise<string | undefined>;
}

export interface PushersDeps {
  readonly database: Database;
  readonly clock: Clock;
  /** Absent on a server without third-party identifiers. */
  readonly addresses: AddressOwners | undefined;
}

/** The client that sets a pusher. */
export interface PusherOwner {
  readonly userId: string;
  readonly deviceId: string | undefined;
}

/** Maximum number of pushers of one user: each notification is sent to all of them. */
const maxPushers = 100;

/** The pushers of local users. Source: client-server API, "Push Notifications". */
export class Pushers {
  readonly #deps: PushersDeps;
  /**
   * Users who may have pushers. A user who has deleted all pushers stays until the next event would notify the user.
   */
  readonly #users = new Set<string>();
  readonly #setListeners: ((userId: string) => void)[] = [];
  /** Number of calls that have set a pusher. */
  #setCount = 0;

  constructor(deps: PushersDeps) {
    this.#deps = deps;
  }

  /** Reads which users have pushers. */
  async start(): Promise<void> {
    for (const userId of await readUsersWithPushers(this.#reader)) this.#users.add(userId);
  }

  /** Users who may have pushers. */
  get users(): ReadonlySet<string> {
    return this.#users;
  }

  /** Calls `listener` with the id of a user who has set a pusher, after the commit. */
  onSet(listener: (userId: string) => void): void {
    this.#setListeners.push(listener);
  }

  /** Returns the pushers of a user. */
  list(userId: string): Promise<Pusher[]> {
    return readPushers(this.#reader, [userId]);
  }

  /** Returns the pushers of several users by user id; users without pushers are absent. */
  async ofUsers(userIds: readonly string[]): Promise<Map<string, Pusher[]>> {
    const setCount = this.#setCount;
    const pushersByUser = Map.groupBy(await readPushers(this.#reader, userIds), ({ userId }) => userId);
    // A pusher that was set during the read may be missing in it.
    if (setCount !== this.#setCount) return pushersByUser;
    for (const userId of userIds) if (!pushersByUser.has(userId)) this.#users.delete(userId);
    return pushersByUser;
  }

  /**
   * Adds a pusher, or replaces the user's pusher with the same `app_id` and `pushkey`. A mail address is stored in
   * canonical form, so that no user has several pushers for one address.
   * @param append whether pushers of other users with the same kind, `app_id` and `pushkey` stay
   * @throws MatrixError M_THREEPID_NOT_FOUND for a mail address that the user's account does not have, M_LIMIT_EXCEEDED
   * for a new pusher of a user who has 100 pushers
   */
  async set(owner: PusherOwner, settings: PusherSettings, append: boolean): Promise<void> {
    const pushkey = settings.kind === 'email' ? await this.#addressOf(owner, settings) : settings.pushkey;
    await this.#deps.database.transaction<PusherTables, void>((writer) =>
      this.setIn(writer, owner, { ...settings, pushkey }, append),
    );
  }

  /** Returns the mail address of a pusher in canonical form. @throws MatrixError M_THREEPID_NOT_FOUND */
  async #addressOf({ userId }: PusherOwner, { pushkey }: PusherSettings): Promise<string> {
    const address = canonicalAddress('email', pushkey);
    const owner = address && (await this.#deps.addresses?.findUser('email', address));
    if (address === undefined || owner !== userId)
      throw new MatrixError(400, 'M_THREEPID_NOT_FOUND', 'Your account does not have this mail address');
    return address;
  }

  /**
   * Like `set`, inside the caller's transaction, and without the check of the mail address, which must be in canonical
   * form.
   */
  async setIn(
    anyWriter: AnyWriter,
    owner: PusherOwner,
    settings: PusherSettings,
    append: boolean,
  ): Promise<void> {
    const writer = writerFor<PusherTables>(anyWriter);
    const pushersWithKey = await findPushers(writer, settings);
    if (!append) {
      // Only pushers of the same kind are deleted, because a pushkey proves its owner for one kind only: for a pusher of
      // the kind `email`, for instance, the server has checked that the mail address belongs to the owner.
      const pushersOfOthers = pushersWithKey.filter(
        ({ userId, kind }) => userId !== owner.userId && kind === settings.kind,
      );
      await deletePushers(
        writer,
        pushersOfOthers.map(({ id }) => id),
      );
    }
    // Earlier versions stored addresses as clients wrote them, and every mail was sent once for each form of the
    // address.
    if (settings.kind === 'email') await this.#removeOtherForms(writer, owner.userId, settings);
    const isNew = pushersWithKey.every(({ userId }) => userId !== owner.userId);
    if (isNew && (await readPushers(writer, [owner.userId])).length >= maxPushers)
      throw new MatrixError(400, 'M_LIMIT_EXCEEDED', `A user has at most ${maxPushers} pushers`);
    await writePusher(writer, { ...owner, setAt: this.#deps.clock.now() }, settings);
    afterCommit(anyWriter, () => {
      this.#setCount++;
      this.#users.add(owner.userId);
      for (const listener of this.#setListeners) listener(owner.userId);
    });
  }

  /**
   * Deletes the user's pusher with this `app_id` and `pushkey`, if there is one. A mail address is found in any form.
   */
  async remove(userId: string, key: Pick<PusherSettings, 'appId' | 'pushkey'>): Promise<void> {
    await this.#deps.database.transaction<PusherTables, void>((writer) => this.removeIn(writer, userId, key));
  }

  /** Like `remove`, inside the caller's transaction. */
  async removeIn(
    writer: AnyWriter,
    userId: string,
    key: Pick<PusherSettings, 'appId' | 'pushkey'>,
  ): Promise<void> {
    const pusherWriter = writerFor<PusherTables>(writer);
    const pushersOfUser = (await findPushers(pusherWriter, key)).filter((pusher) => pusher.userId === userId);
    await deletePushers(
      pusherWriter,
      pushersOfUser.map(({ id }) => id),
    );
    await this.#removeOtherForms(pusherWriter, userId, key);
  }

  /**
   * Deletes the pushers of a user whose address differs from `pushkey` only in its form, for instance in letter case.
   */
  async #removeOtherForms(
    writer: Writer<PusherTables>,
    userId: string,
    { appId, pushkey }: Pick<PusherSettings, 'appId' | 'pushkey'>,
  ): Promise<void> {
    const address = appId === mailAppId ? canonicalAddress('email', pushkey) : undefined;
    if (address === undefined) return;
    const pushersOfOtherForms = (await readPushers(writer, [userId])).filter(
      (pusher) =>
        pusher.kind === 'email' &&
        pusher.pushkey !== pushkey &&
        canonicalAddress('email', pusher.pushkey) === address,
    );
    await deletePushers(
      writer,
      pushersOfOtherForms.map(({ id }) => id),
    );
  }

  get #reader() {
    return this.#deps.database.reader<PusherTables>();
  }
}
