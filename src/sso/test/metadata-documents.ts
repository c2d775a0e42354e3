/** Returns the metadata of an identity provider. @param name entity id and host name */
export const entity = (name: string): string =>
  `<EntityDescriptor entityID="${name}"><IDPSSODescriptor><KeyDescriptor><KeyInfo><X509Data><X509Certificate>AAAA</X509Certificate></X509Data></KeyInfo></KeyDescriptor><SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://${name}/sso"/></IDPSSODescriptor></EntityDescriptor>`;

/** The metadata of 400 identity providers, which is so long that it is read on another thread. */
export const federation = `<EntitiesDescriptor>${Array.from({ length: 400 }, (_, i) => entity(`idp${i}`)).join('')}</EntitiesDescriptor>`;
