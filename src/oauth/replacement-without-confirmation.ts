import type { AccountConfirmation, ExternalConfirmation } from '../accounts/index.ts';
import { crossSigningUpload } from './confirmation-on-page.ts';
import type { CrossSigningResets } from './cross-signing-resets.ts';

/**
 * Lets a user replace the cross-signing keys once without any confirmation, after an administrator has allowed it. All
 * other actions are confirmed as usual.
 */
export class ReplacementWithoutConfirmation implements ExternalConfirmation {
  readonly #resets: CrossSigningResets;
  readonly #next: ExternalConfirmation | undefined;

  /** @param next confirms all other actions, and replacements that no administrator has allowed; absent when these use interactive authentication */
  constructor(resets: CrossSigningResets, next?: ExternalConfirmation) {
    this.#resets = resets;
    this.#next = next;
  }

  async confirm<T>(
    confirmation: AccountConfirmation,
    action: () => Promise<T>,
  ): Promise<{ readonly result: T } | undefined> {
    const { userId } = confirmation.requester;
    const done =
      confirmation.operation === crossSigningUpload ? await this.#resets.use(userId, action) : undefined;
    return done ?? this.#next?.confirm(confirmation, action);
  }
}
