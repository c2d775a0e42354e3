import type { Clock } from '../kernel/clock.ts';
import type { AnyWriter } from '../kernel/database/index.ts';
import type { JobAttempt, Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { type Randomness, randomString } from '../kernel/randomness.ts';
import { operatorFolder, pythonFormat, type Templates } from '../kernel/templates/index.ts';
import type { JsonObject } from '../protocol/index.ts';
import type { EmailOptions } from './config.ts';
import { MailFailure } from './mail-failure.ts';
import { plainName } from './plain-name.ts';
import { Smtp, type SmtpDeps } from './smtp.ts';

/** An image that the HTML part of a mail shows. */
export interface MailImage extends JsonObject {
  /** The name of the image in the HTML part: `cid:…`. */
  readonly cid: string;
  readonly contentType: string;
  readonly base64: string;
}

/** A mail to send. */
export interface Mail {
  readonly to: string;
  /** File name of the template of the HTML part. */
  readonly html: string;
  /** File name of the template of the text part. */
  readonly text: string;
  /** Template of the subject, for example `[%(app)s] Password reset`. */
  readonly subject: string;
  /** Values of the templates, besides `app_name`, `client_base_url` and `server_name`. */
  readonly values: JsonObject;
  /** Values of the subject's placeholders, besides `app` and `server_name`. */
  readonly subjectValues?: Readonly<Record<string, string>>;
  /** The images that the HTML part shows; they are sent as parts of the mail. */
  readonly images?: readonly MailImage[];
  /** Further headers of the mail. */
  readonly headers?: Readonly<Record<string, string>>;
  /** When the mail expires, because it is of no use any more, in milliseconds since the epoch. */
  readonly expiresAt?: number;
  /** Schedules a job that sends nothing. A request then takes as long as a request that sends a mail. */
  readonly isDecoy?: boolean;
}

interface Payload extends JsonObject {
  readonly to: string;
  readonly html: string;
  readonly text: string;
  readonly subject: string;
  readonly values: JsonObject;
  readonly messageId: string;
  readonly expiresAt: number | null;
  readonly isDecoy: boolean;
  /** Absent in mails of earlier releases. */
  readonly images?: MailImage[];
  readonly headers?: Record<string, string>;
}

export interface MailsDeps extends SmtpDeps {
  readonly jobs: Jobs;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly templates: Templates;
  readonly serverName: string;
  readonly log: Logger;
}

/** Maximum number of mails that are sent at the same time. */
const parallel = 2;

/**
 * Maximum number of sent mails whose message ids are remembered, in case a job runs again because its outcome
 * could not be stored.
 */
const rememberedMails = 1_000;

/**
 * Sends all mail of the server. A mail is scheduled in the transaction of its cause, and a job sends it. The job is
 * retried until the mail server accepts the mail or rejects it permanently, the mail expires, or the job has failed too
 * often.
 */
export class Mails {
  readonly options: EmailOptions;
  readonly smtp: Smtp;
  readonly #deps: MailsDeps;
  /** Message ids of sent mails, oldest first. */
  readonly #sent = new Set<string>();

  constructor(deps: MailsDeps, options: EmailOptions) {
    this.#deps = deps;
    this.options = options;
    this.smtp = new Smtp(options, deps);
    deps.jobs.register<Payload>('mail/send', { parallel, run: (attempt) => this.#run(attempt) });
  }

  /** Schedules a mail, which is sent once the transaction of `writer` is committed. */
  async schedule(writer: AnyWriter, mail: Mail): Promise<void> {
    const { jobs, clock, randomness, serverName } = this.#deps;
    const payload: Payload = {
      to: mail.to,
      html: mail.html,
      text: mail.text,
      subject: this.subject(mail.subject, mail.subjectValues),
      values: mail.values,
      messageId: `${randomString(randomness, 24)}@${messageIdDomain(serverName)}`,
      expiresAt: mail.expiresAt ?? null,
      isDecoy: mail.isDecoy ?? false,
      images: [...(mail.images ?? [])],
      headers: { ...mail.headers },
    };
    await jobs.schedule(writer, { kind: 'mail/send', payload, runAt: clock.now() });
  }

  /** Fills in the placeholders of the template of a subject. */
  subject(template: string, values: Readonly<Record<string, string>> = {}): string {
    const names = Object.entries(values).map(([key, name]) => [key, plainName(name)]);
    return pythonFormat(template, {
      app: this.options.app_name,
      server_name: this.#deps.serverName,
      ...Object.fromEntries(names),
    });
  }

  /** Renders both parts of a mail. @throws Error when a template is missing or faulty */
  async render({ html, text, values }: Pick<Mail, 'html' | 'text' | 'values'>) {
    const { templates, serverName } = this.#deps;
    const { app_name, client_base_url } = this.options;
    const allValues = { app_name, client_base_url, server_name: serverName, ...values };
    return { html: await templates.render(html, allValues), text: await templates.render(text, allValues) };
  }

  async #run({ payload, signal }: JobAttempt<Payload>): Promise<void> {
    const { clock, log } = this.#deps;
    const { to, subject, messageId, expiresAt, images = [], headers = {} } = payload;
    if (payload.isDecoy || this.#sent.has(messageId)) return;
    if (expiresAt !== null && expiresAt <= clock.now()) {
      log.warn({ messageId }, 'A mail was not sent in time and is dropped');
      return;
    }
    try {
      const parts = await this.render(payload);
      await this.smtp.send({ to, subject, messageId, images, headers, ...parts }, signal);
    } catch (error) {
      if (!(error instanceof MailFailure) || !error.isPermanent) throw error;
      log.warn({ err: error, messageId }, 'A mail was rejected by the mail server and is dropped');
      return;
    }
    this.#remember(messageId);
    log.info({ messageId }, 'Mail sent');
  }

  #remember(messageId: string): void {
    this.#sent.add(messageId);
    const [oldest] = this.#sent;
    if (this.#sent.size > rememberedMails && oldest !== undefined) this.#sent.delete(oldest);
  }
}

/** The domain of message ids: the server name without its port. */
const messageIdDomain = (serverName: string) => serverName.replace(/:\d+$/, '');

/**
 * Returns the folders of templates of mails as absolute paths, in the order of the search: the folders of the operator
 * come first.
 * @param custom `custom_template_directory`
 * @throws StartFailure when a folder of the operator does not exist
 */
export function mailTemplateFolders(
  custom: string | null,
  email: EmailOptions | null,
  builtIn: readonly string[],
): string[] {
  const ofOperator = {
    'templates.custom_template_directory': custom,
    'email.template_dir': email?.template_dir,
  };
  const folders = Object.entries(ofOperator).flatMap(([name, folder]) =>
    typeof folder === 'string' ? [operatorFolder(name, folder)] : [],
  );
  return [...folders, ...builtIn];
}
