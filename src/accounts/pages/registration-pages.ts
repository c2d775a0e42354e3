import type { Reply } from '../../kernel/http/index.ts';
import { redirect } from '../../kernel/http/index.ts';
import type { Pages } from '../../kernel/pages/index.ts';
import { MatrixError } from '../../protocol/index.ts';
import type { AccountOptions } from '../account-options.ts';
import type { BrowserStages } from '../interactive-auth/browser-stages.ts';
import { Challenge, type ChallengeBody } from '../interactive-auth/challenge.ts';
import { passwordRules } from '../passwords/password-policy.ts';
import type { RegistrationResult } from '../registration/registered-account.ts';
import type { Registration } from '../registration/registration.ts';
import type { StagePages } from './stage-pages.ts';

export interface RegistrationPagesDeps {
  readonly registration: Registration;
  readonly browserStages: BrowserStages;
  readonly stagePages: StagePages;
  readonly pages: Pages;
  /** URL of the web client, shown after the registration. */
  readonly webClient: string | undefined;
}

type Options = Pick<
  AccountOptions,
  'server_name' | 'registration_requires_token' | 'registrations_require_3pid' | 'password_config'
>;

/** The fields of the registration form. */
export interface RegistrationForm {
  readonly username: string;
  readonly password: string;
  readonly password_again: string;
  readonly token: string;
  /** Empty unless the user adds a mail address that the registration does not require. */
  readonly email: string;
}

const tokenStage = 'm.login.registration_token';
const mailStage = 'm.login.email.identity';

/** A registration that continues after the form. */
export interface ContinuedRegistration {
  /** Id of the session of interactive authentication. */
  readonly session: string;
  /** Whether the user adds a mail address that the registration does not require. */
  readonly withMail: boolean;
  /** Address of the client. */
  readonly ip: string;
}

/** URL of the page that continues a registration, relative to the folder of that page: `register/`. */
const continuation = ({ session, withMail }: Omit<ContinuedRegistration, 'ip'>) =>
  `${formUrl(withMail)}${withMail ? '&' : '?'}session=${encodeURIComponent(session)}`;

/** URL that the forms of stages are sent to, relative to the page that continues a registration. */
const formUrl = (withMail: boolean) => (withMail ? 'continue?with=email' : 'continue');

/** Lets users without a client create an account in a browser, by the same steps as a client. */
export class RegistrationPages {
  readonly #deps: RegistrationPagesDeps;
  readonly #options: Options;

  constructor(deps: RegistrationPagesDeps, options: Options) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Shows the form, or that registration is closed. @param token fills in the registration token of a link */
  show(token: string): Promise<Reply> {
    const { pages, registration } = this.#deps;
    if (!registration.isOpen) {
      const values = { server_name: this.#options.server_name };
      return pages.page('register_closed.html', values, { status: 403 });
    }
    return this.#form({ token });
  }

  /** Begins a registration. @param back a page of this server, to which the page about the new account links */
  async begin(form: RegistrationForm, ip: string, back?: string): Promise<Reply> {
    const { username, password, token } = form;
    const email = this.#offersMail ? form.email.trim() : '';
    const filled = { username, token, email };
    if (password !== form.password_again) {
      return this.#form({ ...filled, field: 'password', error: 'The passwords are not the same' }, 400);
    }
    const auth = this.#options.registration_requires_token ? { auth: { type: tokenStage, token } } : {};
    try {
      const body = { username, password, inhibit_login: true, ...auth };
      return this.#registered(await this.#deps.registration.register(body, { ip }), back);
    } catch (error) {
      if (error instanceof Challenge && !error.isFailure) return this.#begun(error.body, email, ip);
      if (!(error instanceof MatrixError)) throw error;
      const { status, errcode, message } = error;
      return this.#form({ ...filled, field: fieldOf(errcode), error: message }, status);
    }
  }

  /**
   * Continues a registration after the form: shows the page of the mail stage, whose mail is sent at once, or redirects to
   * the page of the next stage when other stages come before the mail, or no mail is wanted.
   */
  async #begun(challenge: ChallengeBody, email: string, ip: string): Promise<Reply> {
    const { session } = challenge;
    const withMail = email !== '';
    if (nextStage(challenge, withMail) === mailStage && withMail) {
      const stage = { type: mailStage, session, ip, url: `register/${formUrl(withMail)}` };
      const page = await this.#deps.stagePages.submit(stage, { email });
      if (page !== undefined) return page;
    }
    return redirect(`register/${continuation({ session, withMail })}`, 303);
  }

  /** Shows the next stage of a registration, or that it is complete. @param back as in `begin` */
  async next({ session, withMail, ip }: ContinuedRegistration, back?: string): Promise<Reply> {
    for (;;) {
      const remaining = await this.#remaining(session, ip);
      if ('userId' in remaining) return this.#registered(remaining, back);
      const type = nextStage(remaining, withMail);
      if (type === undefined) throw new MatrixError(500, 'M_UNKNOWN', 'No stage of the registration remains');
      if (type !== 'm.login.dummy') {
        return this.#deps.stagePages.show({ type, session, ip, url: formUrl(withMail) });
      }
      await this.#deps.browserStages.attempt(session, type, {}, ip);
    }
  }

  /** Attempts the next stage of a registration with the submitted fields. */
  async submit(
    fields: Readonly<Record<string, string>>,
    { session, withMail, ip }: ContinuedRegistration,
  ): Promise<Reply> {
    const remaining = await this.#remaining(session, ip);
    const type = 'userId' in remaining ? undefined : nextStage(remaining, withMail);
    if (type !== undefined) {
      const stage = { type, session, ip, url: formUrl(withMail) };
      const page = await this.#deps.stagePages.submit(stage, fields);
      if (page !== undefined) return page;
    }
    return redirect(continuation({ session, withMail }), 303);
  }

  /** Carries out the registration if it is complete. @returns the account, or the remaining stages */
  async #remaining(session: string, ip: string): Promise<RegistrationResult | ChallengeBody> {
    try {
      return await this.#deps.registration.register({ auth: { session } }, { ip });
    } catch (error) {
      if (error instanceof Challenge && !error.isFailure) return error.body;
      throw error;
    }
  }

  #registered({ userId }: Pick<RegistrationResult, 'userId'>, back: string | undefined): Promise<Reply> {
    const { pages, webClient } = this.#deps;
    return pages.page('registered.html', {
      user_id: userId,
      server_name: this.#options.server_name,
      web_client: webClient,
      back,
    });
  }

  /**
   * Whether the form has a field for an optional mail address. A required address has its field on a page of its own.
   */
  get #offersMail(): boolean {
    const isRequired = this.#options.registrations_require_3pid.includes('email');
    return !isRequired && this.#deps.registration.offers(mailStage);
  }

  #form(values: Readonly<Record<string, unknown>>, status = 200): Promise<Reply> {
    const { server_name, registration_requires_token, password_config } = this.#options;
    return this.#deps.pages.page(
      'register.html',
      {
        server_name,
        needs_token: registration_requires_token,
        offers_mail: this.#offersMail,
        password_rules: passwordRules(password_config.policy),
        ...values,
      },
      { status },
    );
  }
}

/**
 * Returns the first remaining stage of the flow with the fewest remaining stages.
 * @param withMail prefers flows that prove a mail address
 */
function nextStage({ flows, completed }: ChallengeBody, withMail: boolean): string | undefined {
  const mailFlows = flows.filter(({ stages }) => stages.includes(mailStage));
  const remaining = (withMail && mailFlows.length > 0 ? mailFlows : flows).map(({ stages }) =>
    stages.filter((stage) => !completed.includes(stage)),
  );
  return remaining.toSorted((one, other) => one.length - other.length)[0]?.[0];
}

/** Returns the field of the form that an error is about. */
function fieldOf(errcode: string): string | undefined {
  if (['M_USER_IN_USE', 'M_INVALID_USERNAME', 'M_EXCLUSIVE'].includes(errcode)) return 'username';
  return errcode.startsWith('M_PASSWORD_') ? 'password' : undefined;
}
