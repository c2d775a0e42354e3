import type { AnyWriter } from '../../kernel/database/index.ts';
import type { Mails } from '../../mail/index.ts';
import type { Purpose } from './purpose.ts';

/** A validation mail, or the mail that is sent instead of it. */
export interface ValidationMail {
  readonly to: string;
  readonly purpose: Purpose;
  /** Whether the address can be validated for the purpose; otherwise its owner receives another mail, or none. */
  readonly canBeValidated: boolean;
  readonly sid: string;
  readonly clientSecret: string;
  readonly token: string;
  readonly expiresAt: number;
}

/** Paths of the links in mails, in the `/_matrix` and `/_synapse` spelling. */
export const submitPaths: Readonly<Record<Purpose, string>> = {
  registration: '/_matrix/client/unstable/registration/email/submit_token',
  password_reset: '/_synapse/client/password_reset/email/submit_token',
  add_threepid: '/_matrix/client/unstable/add_threepid/email/submit_token',
};

/** Writes the mails that validate addresses. */
export class ValidationMails {
  readonly #mails: Mails;
  readonly #baseUrl: string;

  /** @param baseUrl URL of this server for clients, without a slash at its end */
  constructor(mails: Mails, baseUrl: string) {
    this.#mails = mails;
    this.#baseUrl = baseUrl;
  }

  /**
   * Schedules the mail. A job is scheduled even if no mail is to be sent, so that the time of a request does not show
   * whether the address is known.
   */
  async schedule(writer: AnyWriter, mail: ValidationMail): Promise<void> {
    const { purpose, canBeValidated, sid, token, clientSecret } = mail;
    const { options } = this.#mails;
    const query = new URLSearchParams({ token, client_secret: clientSecret, sid });
    const link = `${this.#baseUrl}${submitPaths[purpose]}?${query}`;
    const isNotice = !canBeValidated && purpose !== 'password_reset';
    await this.#mails.schedule(writer, {
      to: mail.to,
      subject:
        purpose === 'password_reset' ? options.subjects.password_reset : options.subjects.email_validation,
      html: isNotice ? options.already_in_use_template_html : options[`${purpose}_template_html`],
      text: isNotice ? options.already_in_use_template_text : options[`${purpose}_template_text`],
      values: isNotice ? {} : { link },
      expiresAt: mail.expiresAt,
      isDecoy: !canBeValidated && !isNotice,
    });
  }
}
