import type { AccountData } from '../../account-data/index.ts';
import type { Accounts, OpenedLogin } from '../../accounts/index.ts';
import { type AnyWriter, afterCommit } from '../../kernel/database/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import { notify } from '../calls/call-all.ts';
import type { ModuleCalls } from '../calls/module-calls.ts';
import type { RegisteredCallbacks } from '../registered-callbacks.ts';

/** The services whose changes modules receive. */
export interface ObservedServices {
  readonly accounts: Pick<Accounts, 'accountStream'>;
  readonly profiles: Pick<Profiles, 'profileStream' | 'read'>;
  readonly accountData: Pick<AccountData, 'accountDataStream' | 'find'>;
}

/** Passes changes of accounts to the modules that receive them. Follows a stream only if a module receives its changes. */
export class AccountChanges {
  readonly #callbacks: RegisteredCallbacks;
  readonly #calls: ModuleCalls;

  constructor(callbacks: RegisteredCallbacks, calls: ModuleCalls) {
    this.#callbacks = callbacks;
    this.#calls = calls;
  }

  /** The receiver of logins; `undefined` where no module receives them. */
  get loggedIn(): ((login: OpenedLogin) => void) | undefined {
    const found = this.#callbacks.with('accountObserver', 'onLogin');
    if (found.length === 0) return undefined;
    return ({ userId, deviceId, type }) =>
      notify(this.#calls, 'onLogin', found, (receive) => receive(userId, deviceId, type));
  }

  /**
   * The receivers of deleted devices. The transaction of the deletion calls them, and they call the modules after its
   * commit. Empty where no module receives deleted devices.
   */
  get deviceCleanups() {
    const observers = this.#callbacks.with('accountObserver', 'onLogout');
    if (observers.length === 0) return [];
    const devicesRemoved = async (
      writer: AnyWriter,
      _publish: unknown,
      userId: string,
      deviceIds: readonly string[],
    ): Promise<void> =>
      afterCommit(writer, () => {
        for (const deviceId of deviceIds) {
          notify(this.#calls, 'onLogout', observers, (receive) => receive(userId, deviceId));
        }
      });
    return [{ devicesRemoved }];
  }

  /**
   * The receiver of changes of mail addresses and phone numbers; `undefined` where no module receives them.
   */
  get addressChanged() {
    const added = this.#callbacks.with('accountObserver', 'onAddressAdded');
    const removed = this.#callbacks.with('accountObserver', 'onAddressRemoved');
    if (added.length === 0 && removed.length === 0) return undefined;
    return (change: { userId: string; medium: string; address: string; isAdded: boolean }) => {
      const { userId, medium, address, isAdded } = change;
      const [name, found] = isAdded
        ? (['onAddressAdded', added] as const)
        : (['onAddressRemoved', removed] as const);
      notify(this.#calls, name, found, (receive) => receive(userId, medium, address));
    };
  }

  /** Follows the streams of accounts, profiles and account data. */
  follow({ accounts, profiles, accountData }: ObservedServices): void {
    this.#followAccounts(accounts);
    const onProfile = this.#callbacks.with('accountObserver', 'onProfile');
    if (onProfile.length > 0) {
      profiles.profileStream.subscribe(({ userId }) =>
        notify(this.#calls, 'onProfile', onProfile, async (receive) =>
          receive(userId, await this.#calls.context.leave(() => profiles.read(userId))),
        ),
      );
    }
    const onAccountData = this.#callbacks.with('accountObserver', 'onAccountData');
    if (onAccountData.length === 0) return;
    accountData.accountDataStream.subscribe((key) =>
      notify(this.#calls, 'onAccountData', onAccountData, async (receive) =>
        receive(
          key.userId,
          key.roomId,
          key.type,
          (await this.#calls.context.leave(() => accountData.find(key))) ?? {},
        ),
      ),
    );
  }

  #followAccounts(accounts: ObservedServices['accounts']): void {
    const onRegistration = this.#callbacks.with('accountObserver', 'onRegistration');
    const onDeactivation = this.#callbacks.with('accountObserver', 'onDeactivation');
    if (onRegistration.length === 0 && onDeactivation.length === 0) return;
    accounts.accountStream.subscribe((change) => {
      const { userId } = change;
      if (change.kind === 'registered') {
        const { isGuest } = change;
        notify(this.#calls, 'onRegistration', onRegistration, (receive) => receive(userId, isGuest));
        return;
      }
      const isDeactivated = change.kind === 'deactivated';
      const byAdmin = !isDeactivated || change.byAdmin;
      notify(this.#calls, 'onDeactivation', onDeactivation, (receive) =>
        receive(userId, isDeactivated, byAdmin),
      );
    });
  }
}
