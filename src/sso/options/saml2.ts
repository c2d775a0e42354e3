import {
  boolean,
  duration,
  eitherOf,
  integer,
  list,
  nullable,
  object,
  oneOf,
  openObject,
  option,
  string,
} from '../../kernel/config/index.ts';
import { attributeRequirements, providerFace } from './provider.ts';

const path = () => string({ minLength: 1 });

const remoteMetadata = openObject({
  url: option(string({ minLength: 1 }), { description: 'The URL.', required: true }),
});

const serviceProvider = openObject({
  metadata: option(
    openObject({
      local: option(list(path()), { description: 'Files.', default: [] }),
      remote: option(list(eitherOf(string({ minLength: 1 }), remoteMetadata)), {
        description: 'URLs, as texts or as mappings with `url`.',
        default: [],
      }),
    }),
    { description: 'Where the metadata of identity providers is.' },
  ),
  accepted_time_diff: option(integer({ minimum: 0 }), {
    description: 'By how much the clocks of the two sides may differ.',
    default: 0,
    unit: 'seconds',
  }),
  service: option(
    openObject({
      sp: option(
        openObject({
          allow_unsolicited: option(boolean(), {
            description: 'Accepts logins that begin at the identity provider.',
            default: false,
          }),
        }),
        { description: 'This side as a service provider.' },
      ),
    }),
    { description: 'The services that this side offers.' },
  ),
});

const mappingProvider = object({
  module: option(nullable(string({ minLength: 1 })), {
    description: 'The module that chooses user ids. Null stands for the built-in one.',
    default: null,
  }),
  config: option(
    openObject({
      mxid_source_attribute: option(string({ minLength: 1 }), {
        description: 'The attribute from which the user id is made.',
        default: 'uid',
      }),
      mxid_mapping: option(oneOf('hexencode', 'dotreplace'), {
        description:
          'What becomes of characters that a user id cannot have: `hexencode` writes them as `=` with two hexadecimal digits, `dotreplace` as dots.',
        default: 'hexencode',
      }),
    }),
    { description: 'Settings of the module; those listed here are of the built-in one.' },
  ),
});

const saml2 = object({
  ...providerFace,
  sp_config: option(nullable(serviceProvider), {
    description: 'The service provider, in the form that the Python library pysaml2 uses.',
    default: null,
  }),
  config_path: option(nullable(path()), { description: 'A file with such a description.', default: null }),
  saml_session_lifetime: option(duration(), {
    description: 'How long a user may take to log in at the identity provider.',
    default: '15m',
  }),
  user_mapping_provider: option(mappingProvider, { description: 'How user ids are chosen.' }),
  grandfathered_mxid_source_attribute: option(string(), {
    description:
      'The attribute by which users are recognised who logged in before the mapping was remembered.',
    default: 'uid',
  }),
  attribute_requirements: attributeRequirements,
  idp_entityid: option(nullable(string({ minLength: 1 })), {
    description: 'Which identity provider to use, when the metadata knows several.',
    default: null,
  }),
});

export const saml2Option = option(nullable(saml2), {
  description: 'Logging in with SAML2. It is on when `sp_config` or `config_path` is given.',
  default: null,
});
