import { boolean, httpUrl, nullable, option, string } from '../../kernel/config/index.ts';

/** Options about the CAPTCHA at registration. */
export const captchaOptions = {
  enable_registration_captcha: option(boolean(), {
    description:
      'Requires a CAPTCHA at registration. It needs `recaptcha_public_key`, `recaptcha_private_key` and `enable_registration`.',
    default: false,
  }),
  recaptcha_public_key: option(nullable(string({ minLength: 1 })), {
    description: 'The public key that the CAPTCHA service has assigned to this site.',
    default: null,
  }),
  recaptcha_public_key_path: option(nullable(string({ minLength: 1 })), {
    description: 'A file with the value of `recaptcha_public_key`.',
    default: null,
    since: '1.135.0',
    fileFor: 'recaptcha_public_key',
  }),
  recaptcha_private_key: option(nullable(string({ minLength: 1 })), {
    description: 'The private key that the CAPTCHA service has assigned to this site.',
    default: null,
    secret: true,
  }),
  recaptcha_private_key_path: option(nullable(string({ minLength: 1 })), {
    description: 'A file with the value of `recaptcha_private_key`.',
    default: null,
    since: '1.135.0',
    fileFor: 'recaptcha_private_key',
  }),
  recaptcha_siteverify_api: option(httpUrl(), {
    description: 'The URL that verifies solved CAPTCHAs.',
    default: 'https://www.recaptcha.net/recaptcha/api/siteverify',
  }),
};
