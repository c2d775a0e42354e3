import { nullable, option, string } from '../../kernel/config/index.ts';

/** Options about secrets for tokens and forms. */
export const secretOptions = {
  macaroon_secret_key: option(nullable(string({ minLength: 1 })), {
    description:
      'Signs access tokens of guests, login tokens, values of logins through single sign-on, and unsubscribe links in mails. When it is null, `registration_shared_secret` is used, and without that a key derived from the signing key. Replacing it ends the sessions of guests and breaks links in mails sent before.',
    default: null,
    secret: true,
  }),
  macaroon_secret_key_path: option(nullable(string({ minLength: 1 })), {
    description: 'A file with the value of `macaroon_secret_key`.',
    default: null,
    since: '1.121.0',
    fileFor: 'macaroon_secret_key',
  }),
  form_secret: option(nullable(string({ minLength: 1 })), {
    description: 'Protects the values in forms. The consent forms need it.',
    default: null,
    secret: true,
  }),
  form_secret_path: option(nullable(string({ minLength: 1 })), {
    description: 'A file with the value of `form_secret`.',
    default: null,
    since: '1.126.0',
    fileFor: 'form_secret',
  }),
};
