import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { AccountData } from './account-data.ts';
import { invitePermissionTypes } from './content-bounds.ts';
import type { IgnoredUsers } from './ignored-users.ts';
import { type InviteDecision, type InviteRules, readInviteRules } from './invite-rules.ts';
import { ParsedAccountData } from './parsed-account-data.ts';

/**
 * Decides whether local users receive invites. Source: client-server API, "Invite permission" and "Ignoring
 * Users"; MSC4155.
 */
export class InvitePermissions {
  readonly #ignored: IgnoredUsers;
  readonly #isNoticesUser: (inviter: string) => boolean;
  readonly #configs: readonly ParsedAccountData<InviteRules>[];

  /** @param isNoticesUser whether an inviter sends the server notices; invites by this user are always allowed */
  constructor(
    accountData: AccountData,
    caches: CacheRegistry,
    ignored: IgnoredUsers,
    isNoticesUser: (inviter: string) => boolean = () => false,
  ) {
    this.#ignored = ignored;
    this.#isNoticesUser = isNoticesUser;
    this.#configs = invitePermissionTypes.map(
      (type) => new ParsedAccountData(accountData, caches, { type, parse: readInviteRules }),
    );
  }

  /**
   * Decides whether a local user receives an invite. Of the user's account data of the types `invitePermissionTypes`, in
   * this order, the first with a decision for the inviter counts. Invites by ignored users are ignored even when that
   * decision allows them.
   */
  async decide(userId: string, inviter: string): Promise<InviteDecision> {
    if (this.#isNoticesUser(inviter)) return 'allow';
    for (const config of this.#configs) {
      const decision = (await config.of(userId))(inviter);
      if (decision === 'allow') break;
      if (decision) return decision;
    }
    return (await this.#ignored.of(userId)).has(inviter) ? 'ignore' : 'allow';
  }
}
