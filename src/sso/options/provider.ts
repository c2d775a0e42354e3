import { list, mxcUri, nullable, object, option, string } from '../../kernel/config/index.ts';

/** Options that describe a login provider to users. */
export const descriptionOptions = {
  idp_name: option(nullable(string({ minLength: 1 })), {
    description: 'The name of the provider that users see. Null means a name made from its kind.',
    default: null,
  }),
  idp_icon: option(nullable(mxcUri()), {
    description: 'An icon beside the name, as an `mxc://` address.',
    default: null,
  }),
  idp_brand: option(
    nullable(string({ pattern: '^[a-z][a-z0-9_.-]{0,254}$', allowed: 'a lowercase word like github' })),
    {
      description: 'An identifier of the brand, by which clients may choose the style of the button.',
      default: null,
    },
  ),
};

const requirement = object({
  attribute: option(string({ minLength: 1 }), { description: 'The name of the attribute.', required: true }),
  value: option(nullable(string()), {
    description: 'The required value. Without this and `one_of`, any value is accepted.',
    default: null,
  }),
  one_of: option(nullable(list(string())), {
    description: 'The accepted values.',
    default: null,
  }),
});

/** Requirements for a user's attributes at login. */
export const attributeRequirements = option(list(requirement), {
  description:
    'Requirements for the attributes of a user; all entries must be met. For an attribute with several values, one matching value is enough.',
  default: [],
});
