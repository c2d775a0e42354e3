import type { Confirmation, Reauthentication } from '../../devices/index.ts';
import { forbidden, type JsonObject } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { InteractiveAuth } from './interactive-auth.ts';
import type { Flows } from './stage.ts';

/** An action to confirm, and whether an earlier confirmation suffices. */
export interface AccountConfirmation extends Confirmation {
  /** Whether the user must confirm even within `ui_auth.session_timeout`. */
  readonly always?: boolean;
}

/**
 * Confirms actions without interactive authentication: users of some sessions authenticate on a page of the
 * authorization server instead. Source: client-server API, "OAuth authentication".
 */
export interface ExternalConfirmation {
  /**
   * Carries out an action that the user has confirmed.
   * @returns `undefined` when the session uses interactive authentication
   * @throws Challenge (401) with the page on which the user confirms the action; MatrixError M_UNRECOGNIZED when
   * sessions of the authorization server cannot carry out the action
   */
  confirm<T>(
    confirmation: AccountConfirmation,
    action: () => Promise<T>,
  ): Promise<{ readonly result: T } | undefined>;
}

/** Requires a logged-in user to authenticate again, by a password or another login type. */
export class Reauthenticator implements Reauthentication {
  readonly #interactiveAuth: InteractiveAuth;
  readonly #sessions: Sessions;
  readonly #options: Pick<AccountOptions, 'ui_auth'>;
  readonly #flows: (userId: string) => Promise<Flows>;
  readonly #externalConfirmation: ExternalConfirmation | undefined;

  /**
   * @param deps `flows` returns the flows that let a user authenticate; `external` is absent when all sessions use
   * interactive authentication
   */
  constructor(
    deps: {
      auth: InteractiveAuth;
      sessions: Sessions;
      flows: (userId: string) => Promise<Flows>;
      external?: ExternalConfirmation | undefined;
    },
    options: Pick<AccountOptions, 'ui_auth'>,
  ) {
    this.#interactiveAuth = deps.auth;
    this.#sessions = deps.sessions;
    this.#flows = deps.flows;
    this.#externalConfirmation = deps.external;
    this.#options = options;
  }

  /**
   * Carries out the action as soon as the user has authenticated again. A recent confirmation suffices, unless the
   * action must always be confirmed.
   * @throws MatrixError M_FORBIDDEN when there are no flows, and what `InteractiveAuth.run` and `ExternalConfirmation` throw
   */
  async confirm<T>(confirmation: AccountConfirmation, action: () => Promise<T>): Promise<T> {
    const confirmed = await this.#externalConfirmation?.confirm(confirmation, action);
    if (confirmed !== undefined) return confirmed.result;
    const { requester, operation, body, ip, always } = confirmation;
    const { tokenId } = requester;
    const timeout = this.#options.ui_auth.session_timeout;
    if (!always && tokenId !== undefined && timeout > 0) {
      if ((await this.#sessions.sinceConfirmed(tokenId)) < timeout) return action();
    }
    const flows = await this.#flows(requester.userId);
    if (flows.length === 0) throw forbidden('No authentication flow is available to confirm this action');
    const request = { operation, body: body as JsonObject, requester, ip, flows };
    return this.#interactiveAuth.run(request, async () => {
      if (tokenId !== undefined) await this.#sessions.markConfirmed(tokenId);
      return action();
    });
  }
}
