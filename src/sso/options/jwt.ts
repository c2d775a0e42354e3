import { boolean, list, nullable, object, option, string } from '../../kernel/config/index.ts';

const jwt = object({
  enabled: option(boolean(), { description: 'Lets users log in with a JSON web token.', default: false }),
  secret: option(nullable(string({ minLength: 1 })), {
    description:
      'The shared secret or the public key that tokens are verified with. Required when tokens are enabled.',
    default: null,
    secret: true,
  }),
  algorithm: option(nullable(string({ minLength: 1 })), {
    description: 'The signature algorithm of tokens, for instance `HS256`. Required when tokens are enabled.',
    default: null,
  }),
  subject_claim: option(nullable(string({ minLength: 1 })), {
    description: 'The claim that becomes the local part of the user id.',
    default: 'sub',
  }),
  display_name_claim: option(nullable(string({ minLength: 1 })), {
    description: 'The claim that becomes the display name. Null uses none.',
    default: null,
  }),
  issuer: option(nullable(string({ minLength: 1 })), {
    description: 'The required issuer of tokens. Null accepts any.',
    default: null,
  }),
  audiences: option(nullable(list(string({ minLength: 1 }))), {
    description: 'The accepted audiences of tokens. With null, a token that names an audience is refused.',
    default: null,
  }),
});

export const jwtOption = option(jwt, {
  description:
    'Logging in with JSON web tokens, which the protocol does not define. The claims `exp`, `nbf` and `iat` are checked when a token has them.',
});
