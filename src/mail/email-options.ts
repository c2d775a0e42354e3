import {
  boolean,
  duration,
  httpUrl,
  integerOrDigits,
  nullable,
  object,
  option,
  string,
} from '../kernel/config/index.ts';
import { subjectsOption } from './subject-options.ts';
import { templateOptions } from './template-options.ts';

const email = object({
  smtp_host: option(string({ minLength: 1 }), {
    description: 'The host of the mail server that takes outgoing mail.',
    default: 'localhost',
  }),
  smtp_port: option(nullable(integerOrDigits({ minimum: 1, maximum: 65535 })), {
    description: 'The port of the mail server. Null means 465 with `force_tls` and 25 without.',
    default: null,
    unit: 'port number',
    changed: ['1.64.0: null means 465 when `force_tls` is on.'],
  }),
  smtp_user: option(nullable(string()), {
    description: 'The user name to log in to the mail server with.',
    default: null,
  }),
  smtp_pass: option(nullable(string()), {
    description: 'The password to log in to the mail server with.',
    default: null,
    secret: true,
  }),
  smtp_pass_path: option(nullable(string({ minLength: 1 })), {
    description: 'A file with the value of `smtp_pass`.',
    default: null,
    fileFor: 'smtp_pass',
  }),
  force_tls: option(boolean(), {
    description:
      'Speaks TLS from the first byte instead of upgrading a plain connection with STARTTLS. `require_transport_security` then has no effect.',
    default: false,
    since: '1.64.0',
  }),
  require_transport_security: option(boolean(), {
    description: 'Sends nothing to a mail server that does not offer STARTTLS.',
    default: false,
  }),
  enable_tls: option(boolean(), {
    description:
      'Uses TLS when the mail server offers it, and then requires its certificate to be valid for `tlsname`. When off, TLS is never used.',
    default: true,
  }),
  tlsname: option(nullable(string({ minLength: 1 })), {
    description: "The name that the mail server's certificate must be valid for. Null means `smtp_host`.",
    default: null,
  }),
  notif_from: option(nullable(string({ minLength: 1 })), {
    description:
      'The sender of all mail, for example `Chat <noreply@example.org>`. `%(app)s` in it is replaced by `app_name`. Required when mail is sent.',
    default: null,
  }),
  app_name: option(string(), {
    description: 'The text that replaces `%(app)s` in the sender and in subjects.',
    default: 'Matrix',
  }),
  enable_notifs: option(boolean(), {
    description:
      'Sends notifications about missed messages by mail. When off, users can subscribe but receive none.',
    default: false,
  }),
  notif_for_new_users: option(boolean(), {
    description: 'Subscribes new users to mailed notifications.',
    default: true,
  }),
  notif_delay_before_mail: option(duration(), {
    description:
      'How long a notification waits before it is mailed, in case the user reads the message in the meantime.',
    default: '10m',
    since: '1.99.0',
  }),
  client_base_url: option(httpUrl(), {
    description: 'The web client (or link service) that links in mails lead to.',
    default: 'https://matrix.to',
    deprecatedNames: ['email.riot_base_url'],
  }),
  validation_token_lifetime: option(duration(), {
    description: 'How long the link in a validation mail is valid.',
    default: '1h',
  }),
  invite_client_location: option(nullable(httpUrl()), {
    description:
      'The web client that users invited by mail should use. It is passed to the identity server as `org.proto.web_client_location`.',
    default: null,
  }),
  subjects: subjectsOption,
  ...templateOptions,
});

export const emailOption = option(nullable(email), {
  description: 'The mail server, the sender, and when mail is sent. Null sends no mail.',
  default: null,
});
