import type { OidcProviderConfig } from './options/oidc.ts';

type Requirement = OidcProviderConfig['attribute_requirements'][number];

/**
 * Whether the attributes of a user meet all requirements. Where an attribute has several values, one needs to match. A
 * requirement with neither `value` nor `one_of` is met by any value.
 */
export function meetsRequirements(
  attributes: Readonly<Record<string, unknown>>,
  requirements: readonly Requirement[],
): boolean {
  return requirements.every(({ attribute, value, one_of }) => {
    const found = Object.hasOwn(attributes, attribute) ? attributes[attribute] : undefined;
    if (found === undefined || found === null) return false;
    const accepted = [...(value === null ? [] : [value]), ...(one_of ?? [])];
    if (value === null && one_of === null) return true;
    const values = Array.isArray(found) ? found : [found];
    return values.some((one) => accepted.includes(String(one)));
  });
}
