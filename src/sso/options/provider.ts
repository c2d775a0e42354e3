import { list, mxcUri, nullable, object, option, string } from '../../kernel/config/index.ts';

/** How a login provider is shown to users. */
export const providerFace = {
  idp_name: option(nullable(string({ minLength: 1 })), {
    description: 'What users see the provider called. Null stands for a name made from its kind.',
    default: null,
  }),
  idp_icon: option(nullable(mxcUri()), {
    description: 'A picture to show beside the name, as an `mxc://` address.',
    default: null,
  }),
  idp_brand: option(
    nullable(string({ pattern: '^[a-z][a-z0-9_.-]{0,254}$', allowed: 'a lowercase word such as github' })),
    {
      description: 'A word by which clients know the brand of the provider and may choose its style.',
      default: null,
    },
  ),
};

const requirement = object({
  attribute: option(string({ minLength: 1 }), { description: 'The name of the attribute.', required: true }),
  value: option(nullable(string()), {
    description: 'The value that it must have. Without this and `one_of`, the attribute need only be there.',
    default: null,
  }),
  one_of: option(nullable(list(string())), {
    description: 'The values of which it must have one.',
    default: null,
  }),
});

/** What a user's attributes must be for the login to be accepted. */
export const attributeRequirements = option(list(requirement), {
  description:
    'What the attributes of a user must be like; all entries must hold. For an attribute with several values, one that fits is enough.',
  default: [],
});
