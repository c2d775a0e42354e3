import { childrenOf, parseXml, type XmlElement } from '../xml.ts';

/** An identity provider, as its metadata describes it. */
export interface SamlIdentityProvider {
  readonly entityId: string;
  readonly name: string;
  /** URL of single sign-on with the binding HTTP-Redirect. */
  readonly singleSignOn: string;
  /** Certificates of the keys that sign responses, in PEM form. */
  readonly certificates: readonly string[];
}

const redirectBinding = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';

/**
 * Returns the identity providers of a metadata document, which contains one entity or several. Entities that
 * are no usable identity providers are left out.
 * @throws Error when the document is not valid
 */
export function readMetadata(text: string): SamlIdentityProvider[] {
  return entitiesOf(parseXml(text)).flatMap((entity) => {
    const entityId = entity.attributes['entityID'];
    const [descriptor] = childrenOf(entity, 'IDPSSODescriptor');
    if (entityId === undefined || descriptor === undefined) return [];
    const endpoint = childrenOf(descriptor, 'SingleSignOnService').find(
      ({ attributes }) => attributes['Binding'] === redirectBinding,
    );
    const singleSignOn = endpoint?.attributes['Location'];
    const certificates = signingCertificates(descriptor);
    if (singleSignOn === undefined || certificates.length === 0) return [];
    return [{ entityId, name: nameOf(entity, descriptor) ?? entityId, singleSignOn, certificates }];
  });
}

const entitiesOf = (root: XmlElement): XmlElement[] =>
  root.name === 'EntityDescriptor' ? [root] : root.children.flatMap(entitiesOf);

function signingCertificates(descriptor: XmlElement): string[] {
  return childrenOf(descriptor, 'KeyDescriptor')
    .filter(({ attributes }) => attributes['use'] === undefined || attributes['use'] === 'signing')
    .flatMap((key) => descendants(key, 'X509Certificate'))
    .map(({ text }) => pemOf(text.replace(/\s+/g, '')));
}

const descendants = (element: XmlElement, name: string): XmlElement[] =>
  element.children.flatMap((child) => [...(child.name === name ? [child] : []), ...descendants(child, name)]);

const pemOf = (base64: string) =>
  `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----\n`;

/**
 * Returns the name for users, in English if there is one. Source: SAML metadata extensions for login and discovery UI,
 * 2.1.2
 */
function nameOf(entity: XmlElement, descriptor: XmlElement): string | undefined {
  const names = [
    ...childrenOf(descriptor, 'Extensions')
      .flatMap((extensions) => childrenOf(extensions, 'UIInfo'))
      .flatMap((info) => childrenOf(info, 'DisplayName')),
    ...childrenOf(entity, 'Organization').flatMap((organization) =>
      childrenOf(organization, 'OrganizationDisplayName'),
    ),
  ].filter(({ text }) => text !== '');
  const english = names.find(({ attributes }) => attributes['lang'] === 'en');
  return (english ?? names[0])?.text;
}
