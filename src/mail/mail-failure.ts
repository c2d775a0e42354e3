import type { EmailOptions } from './config.ts';

/** The mail server and the options of a failed attempt to send a mail. */
interface FailedDelivery {
  readonly host: string;
  readonly port: number;
  readonly options: EmailOptions;
}

/** The members of nodemailer's errors. */
interface SmtpError extends Error {
  /** For example `EAUTH`. */
  readonly code?: string;
  /** The status of the mail server's reply, for example 550. */
  readonly responseCode?: number;
  /** The mail server's reply. */
  readonly response?: string;
}

/** The mail server has not accepted a mail. The message of the error says what failed and which option may be wrong. */
export class MailFailure extends Error {
  override readonly name = 'MailFailure';
  /** Whether the mail server would reject the same mail again. */
  readonly isPermanent: boolean;

  constructor(cause: Error, delivery: FailedDelivery) {
    const error = cause as SmtpError;
    super(explain(error, delivery), { cause });
    const { code, responseCode = 0 } = error;
    // 503 (bad sequence of commands) does not mean that this mail is refused.
    const isRejection = responseCode >= 500 && responseCode < 600 && responseCode !== 503;
    this.isPermanent = isRejection && (code === 'EENVELOPE' || code === 'EMESSAGE');
  }
}

function explain(error: SmtpError, { host, port, options }: FailedDelivery): string {
  const address = `${host}:${port}`;
  const reply = error.response === undefined ? '' : ` It answered: ${error.response}`;
  const { message } = error;
  if (/ENOTFOUND|EAI_AGAIN/.test(message) || error.code === 'EDNS')
    return `The mail server ${host} cannot be found in the DNS. Check email.smtp_host. (${message})`;
  if (/ECONNREFUSED/.test(message))
    return `Nothing accepts connections at ${address}. Check email.smtp_host and email.smtp_port, and whether the mail server runs.`;
  if (/EHOSTUNREACH|ENETUNREACH/.test(message))
    return `The mail server ${address} cannot be reached from this machine. (${message})`;
  if (/wrong version number|packet length too long|unexpected message/i.test(message) && options.force_tls)
    return `The mail server ${address} does not begin with TLS. Turn off email.force_tls (STARTTLS is then used), or use the port for TLS, usually 465.`;
  if (isAboutCertificate(message))
    return `The certificate of the mail server ${address} is not accepted for ${options.tlsname ?? host}: ${message}. Check email.tlsname, and whether this machine trusts the issuer.`;
  if (error.code === 'ETIMEDOUT' || /timeout|timed out/i.test(message))
    return `The mail server ${address} did not answer in time. A firewall may block the port; or the server expects TLS from the first byte (email.force_tls), usually at port 465. (${message})`;
  if (error.code === 'ETLS' && options.require_transport_security)
    return `The mail server ${address} does not offer STARTTLS, which email.require_transport_security requires.${reply} (${message})`;
  if (error.code === 'EAUTH' || error.code === 'ENOAUTH')
    return `The mail server ${address} did not accept the login. Check email.smtp_user and email.smtp_pass; some servers allow logins with TLS only.${reply || ` (${message})`}`;
  if (error.code === 'EENVELOPE')
    return `The mail server ${address} rejected the sender or the recipient. Check email.notif_from and the address.${reply || ` (${message})`}`;
  if (error.code === 'EMESSAGE') return `The mail server ${address} rejected the mail.${reply}`;
  if (error.code === 'ECONNECTION' || /closed|ECONNRESET|EPIPE/i.test(message))
    return `The mail server ${address} closed the connection.${reply} (${message})`;
  return `The mail server ${address} did not accept the mail: ${message}`;
}

const isAboutCertificate = (message: string) =>
  /altnames|self.signed|unable to (verify|get)|certificate|CERT_/i.test(message);
