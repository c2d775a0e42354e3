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
import { attributeRequirements, descriptionOptions } from './provider.ts';

const path = () => string({ minLength: 1 });

const remoteMetadata = openObject({
  url: option(string({ minLength: 1 }), { description: 'The URL of metadata.', required: true }),
});

const serviceProvider = openObject({
  metadata: option(
    openObject({
      local: option(list(path()), { description: 'Files with metadata.', default: [] }),
      remote: option(list(eitherOf(string({ minLength: 1 }), remoteMetadata)), {
        description: 'URLs of metadata, as texts or as mappings with `url`.',
        default: [],
      }),
    }),
    { description: 'The metadata of identity providers.' },
  ),
  accepted_time_diff: option(integer({ minimum: 0 }), {
    description: 'The maximum difference between the clocks of this server and of the identity provider.',
    default: 0,
    unit: 'seconds',
  }),
  service: option(
    openObject({
      sp: option(
        openObject({
          allow_unsolicited: option(boolean(), {
            description: 'Accepts logins that start at the identity provider.',
            default: false,
          }),
        }),
        { description: 'This server as a service provider.' },
      ),
    }),
    { description: 'The services of this server.' },
  ),
});

const mappingProvider = object({
  module: option(nullable(string({ minLength: 1 })), {
    description:
      'The module that maps attributes to accounts: a JavaScript or TypeScript file (relative to the configuration file when it begins with `./` or `../`), or the name of a package that is installed beside Hearth. Null means the built-in one.',
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
          'The replacement of characters that a user id cannot contain: `hexencode` writes them as `=` with two hexadecimal digits, `dotreplace` as dots.',
        default: 'hexencode',
      }),
    }),
    { description: 'Settings of the module; those listed here are for the built-in one.' },
  ),
});

const saml2 = object({
  enabled: option(boolean(), {
    description: 'Turns SAML2 off when it is false, whatever else is given.',
    default: true,
  }),
  ...descriptionOptions,
  sp_config: option(nullable(serviceProvider), {
    description: 'The service provider, in the format of the Python library pysaml2.',
    default: null,
  }),
  config_path: option(nullable(path()), {
    description: 'A file with the same content as `sp_config`.',
    default: null,
  }),
  saml_session_lifetime: option(duration(), {
    description: 'How long a user may take to log in at the identity provider.',
    default: '15m',
  }),
  user_mapping_provider: option(mappingProvider, { description: 'How user ids are chosen.' }),
  grandfathered_mxid_source_attribute: option(string(), {
    description: 'The attribute that identifies users who logged in before mappings were stored.',
    default: 'uid',
  }),
  attribute_requirements: attributeRequirements,
  idp_entityid: option(nullable(string({ minLength: 1 })), {
    description: 'The only identity provider that users may log in with, when the metadata contains several.',
    default: null,
  }),
});

export const saml2Option = option(nullable(saml2), {
  description: 'Logging in with SAML2. It is on when `sp_config` or `config_path` is given.',
  default: null,
});
