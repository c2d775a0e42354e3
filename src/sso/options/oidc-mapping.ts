import { boolean, mapOf, nullable, object, openObject, option, string } from '../../kernel/config/index.ts';

const template = (description: string) => option(nullable(string()), { description, default: null });

const builtIn = openObject({
  subject_template: option(nullable(string()), {
    description: 'The value by which a user is recognised. Null means the claim `sub`.',
    default: '{{ user.sub }}',
  }),
  subject_claim: option(nullable(string()), {
    description: 'The claim by which a user is recognised. Use `subject_template`.',
    default: null,
    deprecated: true,
    changed: ['1.75.0: deprecated.'],
  }),
  picture_template: template('The URL of the avatar. Needs `enable_media_repo`.'),
  picture_claim: option(nullable(string()), {
    description: 'The claim with the URL of the avatar. Use `picture_template`.',
    default: null,
    deprecated: true,
    changed: ['1.75.0: deprecated.'],
  }),
  localpart_template: template('The local part of the user id. With null, users choose it.'),
  confirm_localpart: option(boolean(), {
    description: 'Asks users to confirm the local part, and lets them choose another.',
    default: false,
  }),
  display_name_template: template('The display name.'),
  email_template: template('The mail address.'),
  extra_attributes: option(mapOf(string()), {
    description:
      'Further attributes to pass to the client at login, each a template. The specification does not define this.',
    default: {},
  }),
});

export const oidcMappingProvider = option(
  object({
    module: option(nullable(string({ minLength: 1 })), {
      description:
        'The module that maps claims to accounts: a JavaScript or TypeScript file (relative to the configuration file when it begins with `./` or `../`), or the name of a package that is installed beside Hearth. Null means the built-in one, which uses templates.',
      default: null,
    }),
    config: option(builtIn, {
      description:
        'Settings of the module; those listed here are for the built-in one. In its templates, `user` contains the claims.',
    }),
  }),
  { description: 'The mapping of claims to accounts.' },
);
