import type { Confirmation, Reauthentication } from '../../devices/index.ts';
import { forbidden, type JsonObject } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { InteractiveAuth } from './interactive-auth.ts';
import type { Flows } from './stage.ts';

/** A confirmation, and whether one that was given a while ago will do. */
export interface AccountConfirmation extends Confirmation {
  /** Ask even if `ui_auth.session_timeout` would not. */
  readonly always?: boolean;
}

/** Has a logged-in user prove who they are: by their password, or however else they can log in. */
export class Reauthenticator implements Reauthentication {
  readonly #auth: InteractiveAuth;
  readonly #sessions: Sessions;
  readonly #options: Pick<AccountOptions, 'ui_auth'>;
  readonly #flows: () => Flows;

  /** @param flows the ways in which users can prove who they are */
  constructor(
    deps: { auth: InteractiveAuth; sessions: Sessions; flows: () => Flows },
    options: Pick<AccountOptions, 'ui_auth'>,
  ) {
    this.#auth = deps.auth;
    this.#sessions = deps.sessions;
    this.#flows = deps.flows;
    this.#options = options;
  }

  /** @throws MatrixError 401 with the flows; M_FORBIDDEN when there is no way to prove it */
  async confirm({ requester, operation, body, ip, always }: AccountConfirmation): Promise<void> {
    const { tokenId } = requester;
    const timeout = this.#options.ui_auth.session_timeout;
    if (!always && tokenId !== undefined && timeout > 0) {
      if ((await this.#sessions.sinceConfirmed(tokenId)) < timeout) return;
    }
    const flows = this.#flows();
    if (flows.length === 0) throw forbidden('There is no way to confirm this with');
    await this.#auth.authenticate({ operation, body: body as JsonObject, requester, ip, flows });
    if (tokenId !== undefined) await this.#sessions.markConfirmed(tokenId);
  }
}
