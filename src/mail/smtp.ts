import type { Transporter } from 'nodemailer';
import { pythonFormat } from '../kernel/templates/index.ts';
import type { EmailOptions } from './config.ts';
import { MailFailure } from './mail-failure.ts';

/** A mail that is ready to be sent. */
export interface RenderedMail {
  /** One address. */
  readonly to: string;
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  /** Without angle brackets; the same for all attempts to send the mail, so that receivers recognize duplicates. */
  readonly messageId: string;
  /** Images that the HTML part shows; it refers to them by `cid`. */
  readonly images?: readonly {
    readonly cid: string;
    readonly contentType: string;
    readonly base64: string;
  }[];
  readonly headers?: Readonly<Record<string, string>>;
}

export interface SmtpDeps {
  /** PEM of the trusted certificate authorities; by default, the machine's. */
  readonly authorities?: readonly string[] | undefined;
  /** Milliseconds that the mail server may stay silent; by default 30 seconds. */
  readonly timeout?: number;
}

/** Port of mail servers with TLS from the first byte. */
const tlsPort = 465;

/** Port of mail servers that begin without TLS. */
const plainPort = 25;

const defaultTimeout = 30_000;

/** Sends mails to the mail server of the configuration: one connection for each mail. */
export class Smtp {
  readonly #options: EmailOptions;
  readonly #deps: SmtpDeps;
  #transporter: Promise<Transporter> | undefined;

  constructor(options: EmailOptions, deps: SmtpDeps = {}) {
    this.#options = options;
    this.#deps = deps;
  }

  /** Host and port of the mail server. */
  get server(): { readonly host: string; readonly port: number } {
    const { smtp_host: host, smtp_port, force_tls } = this.#options;
    return { host, port: smtp_port ?? (force_tls ? tlsPort : plainPort) };
  }

  /** The sender of all mails. */
  get from(): string {
    const { notif_from, app_name } = this.#options;
    return pythonFormat(notif_from ?? '', { app: app_name });
  }

  /**
   * Resolves when the mail server has accepted the mail.
   * @throws MailFailure
   */
  async send(mail: RenderedMail, signal?: AbortSignal): Promise<void> {
    this.#transporter ??= this.#open();
    const transporter = await this.#transporter;
    try {
      const { images = [], headers, ...parts } = mail;
      await transporter.sendMail({
        ...parts,
        from: this.from,
        // An object, so that no part of the address is read as another address.
        to: { name: '', address: mail.to },
        messageId: `<${mail.messageId}>`,
        headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All', ...headers },
        attachments: images.map(({ cid, contentType, base64 }) => ({
          cid,
          contentType,
          content: Buffer.from(base64, 'base64'),
          contentDisposition: 'inline',
        })),
        disableFileAccess: true,
        disableUrlAccess: true,
        ...(signal && { signal }),
      });
    } catch (error) {
      throw new MailFailure(error as Error, { ...this.server, options: this.#options });
    }
  }

  /** Loads the library with the first mail, to keep the start short. */
  async #open(): Promise<Transporter> {
    const { createTransport } = await import('nodemailer');
    const { smtp_user, smtp_pass, force_tls, enable_tls, require_transport_security } = this.#options;
    const { host, port } = this.server;
    const { authorities, timeout = defaultTimeout } = this.#deps;
    return createTransport({
      host,
      port,
      secure: force_tls,
      requireTLS: require_transport_security && !force_tls,
      ignoreTLS: !enable_tls,
      servername: this.#options.tlsname ?? undefined,
      tls: {
        servername: this.#options.tlsname ?? undefined,
        ...(authorities && { ca: [...authorities] }),
      },
      ...(smtp_user !== null && { auth: { user: smtp_user, pass: smtp_pass ?? '' } }),
      connectionTimeout: timeout,
      greetingTimeout: timeout,
      dnsTimeout: timeout,
      socketTimeout: timeout,
    });
  }
}
